"""The server of a run's endpoint; imported at the first call, because it takes longer than a small run."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import uvicorn
from starlette.routing import Route

from localvertex.containers.serving.machine import Machine
from localvertex.runner.endpoint.offered import Methods, Offered
from localvertex.serve.access.access import Access
from localvertex.serve.access.step_access import StepAccess
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.app import application
from localvertex.serve.connection import Connection
from localvertex.serve.endpoints.deployments import Deployments
from vertex_gpu_training.userinput.temporary import temporary_folder

_REFUSAL = (
    "the endpoint of a run answers only the steps of this run, which find address and token in the file that the "
    "variable LOCALVERTEX_ENDPOINT names"
)

_UNSERVED = (
    "the endpoint of `localvertex run` does not implement {name} of Vertex AI; docs/serve.md lists what steps may call"
)


class _Service:
    """What the endpoint offers; its operations end with the run."""

    unserved = _UNSERVED
    routes: tuple[Route, ...] = ()

    def __init__(self, machine: Machine, log: Callable[[str], None]) -> None:
        self._held = ExitStack()
        operations = Operations(Store(Path(self._held.enter_context(temporary_folder())), log))
        self._store = Store(machine.work_dir, log)
        self._offered = Offered(self._store, operations, Deployments(machine))

    @property
    def collections(self) -> dict[str, Methods]:
        return self._offered.collections

    def open(self) -> None:
        """Do nothing: a server of the same work directory may run, which cleans up."""

    def close(self) -> None:
        self._offered.close()
        self._store.close()
        self._held.close()


class Server:
    """The server of one run.

    Args:
        machine: The processes of the run, and the work directory with the registry.
        access: The token of the run.
        log: Called with each problem, as a line of text.
    """

    def __init__(self, machine: Machine, access: StepAccess, log: Callable[[str], None]) -> None:
        # Nobody has the first token, which would allow everything.
        guard = Access(secrets.token_urlsafe(), steps=access, refusal=_REFUSAL)
        self._config = uvicorn.Config(
            application(_Service(machine, log), guard),
            http=Connection,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        # A client that sends no HTTP is no concern of the user.
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        self._server = uvicorn.Server(self._config)

    def run(self, listener: socket.socket) -> None:
        """Serve until `stop`."""
        with asyncio.Runner(loop_factory=self._config.get_loop_factory()) as runner:
            runner.run(self._server.serve(sockets=[listener]))

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._server.should_exit = True
