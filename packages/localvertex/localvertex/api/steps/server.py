"""The server of a run's endpoint; imported at the first call, because it takes longer than a small run."""

import asyncio
import logging
import secrets
import socket
from contextlib import ExitStack, closing
from pathlib import Path

import uvicorn
from starlette.routing import Route

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.temporary import temporary_folder
from localvertex.api.access.access import Access
from localvertex.api.access.step_access import StepAccess
from localvertex.api.app import application
from localvertex.api.connection import Connection
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.jobs.custom_jobs import StepCustomJobs
from localvertex.api.metadata.metadata import Metadata
from localvertex.api.rest.storage.storage import Storage
from localvertex.api.rest.store import Store
from localvertex.api.rpc import carried
from localvertex.api.steps.methods import Methods, StepApi
from localvertex.api.tensorboards import service as tensorboards
from localvertex.containers.serving.machine import Machine

_REFUSAL = (
    "the endpoint of a run answers only the steps of this run, which find address and token in the file that the "
    "variable LOCALVERTEX_ENDPOINT names"
)

_UNSERVED = (
    "the endpoint of `localvertex run` does not implement {name} of Vertex AI; docs/serve.md lists what steps may call"
)


class _Service:
    """The services of the endpoint."""

    unserved = _UNSERVED

    def __init__(self, machine: Machine, log: WriteLine) -> None:
        self._held = ExitStack()
        store = Store(machine.work_dir, log)
        self._held.callback(store.close)
        step_api = StepApi(store, Deployments(machine), machine.buckets)
        self._held.callback(step_api.close)
        jobs = StepCustomJobs(store, log)
        self._held.callback(jobs.close)
        self.collections: dict[str, Methods] = {
            **step_api.collections,
            "customJobs": {
                "create": ("POST", "", jobs.create),
                "get": ("GET", "/{id:id}", jobs.get),
                "list": ("GET", "", jobs.list_all),
                "cancel": ("POST", "/{id:id}:cancel", jobs.cancel),
                "delete": ("DELETE", "/{id:id}", jobs.delete),
            },
            **Metadata(store).collections,
            "tensorboards": tensorboards.methods(store),
        }
        root, uploads = machine.buckets.root, Path(self._held.enter_context(temporary_folder()))
        self.routes: list[Route] = [carried.ROUTE, *(Storage(root, uploads).routes if root else [])]

    def open(self) -> None:
        """Do nothing: a server of the same work folder may run, which cleans up."""

    def close(self) -> None:
        self._held.close()


class StepServer:
    """The server of one run.

    Args:
        machine: The processes of the run, and the work folder with the registry.
        access: The token of the run.
        log: Called with each problem, as a line of text.
    """

    def __init__(self, machine: Machine, access: StepAccess, log: WriteLine) -> None:
        self._machine, self._log = machine, log
        # The first token would allow everything, so no process gets it.
        self._access = Access(secrets.token_urlsafe(), steps=access, refusal=_REFUSAL)
        self._server: uvicorn.Server | None = None
        self._is_stopped = False

    def run(self, listener: socket.socket) -> None:
        """Serve until `stop`."""
        # A client that sends no HTTP does not concern the user.
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        with closing(_Service(self._machine, self._log)) as service:
            config = uvicorn.Config(
                application(service, self._access),
                http=Connection,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
            self._server = uvicorn.Server(config)
            if self._is_stopped:
                return
            with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
                runner.run(self._server.serve(sockets=[listener]))

    def stop(self) -> None:
        """End `run`, from any thread and at any time."""
        self._is_stopped = True
        if self._server is not None:
            self._server.should_exit = True
