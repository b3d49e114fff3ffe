"""The API of the steps of a run, which the run gets from its caller.

Its methods are imported only by the steps that need them.
"""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from localvertex._base import extras
from localvertex._base.lines import WriteLine
from localvertex.api.access.step_access import StepAccess
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.step_file import StepFile
from localvertex.errors import TaskFailed
from localvertex.executors.api_access import Endpoints
from localvertex.executors.step_jobs import StepJobs
from localvertex.runner.options import Options

if TYPE_CHECKING:
    from localvertex.api.steps.server import StepServer

_HOST = "127.0.0.1"


class Reach:
    """The API of the steps of runs.

    Args:
        server: Access to the server that starts the runs; None: each run has an endpoint of its own.
    """

    def __init__(self, server: StepAccess | None = None) -> None:
        self._server = server
        self._own: dict[str, StepAccess] = {}
        """The access to the endpoint of each run that has its own."""

    @contextmanager
    def open_endpoint(self, machine: Machine, warn: WriteLine, run: str = "") -> Iterator[None]:
        """Let the processes of a machine call; a run whose steps do not call is not affected by a failure.

        The file of the endpoint becomes part of the credentials that the processes get, until the block ends.
        """
        with ExitStack() as held:
            try:
                self._open(machine, warn, held, run)
            except OSError as error:
                warn(f"the steps of this run cannot reach the model registry: {error}")
                held.close()
            yield

    def _open(self, machine: Machine, warn: WriteLine, held: ExitStack, run: str) -> None:
        file = machine.credentials.step_file
        access = self._server
        if access is None:
            own = _OwnEndpoint(machine, warn)
            held.callback(own.close)
            access = self._own[run] = own.access
            held.callback(self._own.pop, run)
        _write(file, access, machine, held, run)

    @contextmanager
    def grant(self, jobs: StepJobs, machine: Machine) -> Iterator[StepFile | None]:
        """Let the processes of one step create jobs: yield their file of the endpoint; None if there is no endpoint.

        Raises:
            OSError: The file cannot be written.
        """
        access = self._server or self._own.get(jobs.run)
        with ExitStack() as held:
            file = StepFile() if access else None
            if access and file:
                _write(file, access, machine, held, jobs.run, jobs)
            yield file

    @contextmanager
    def endpoints(self, machine: Machine, log: WriteLine) -> Iterator[Endpoints]:
        """Return the endpoints of the work folder; the processes that they start end with the block.

        Raises:
            TaskFailed: The packages that they need are not installed.
        """
        try:
            from localvertex.api.steps.endpoint_calls import local_endpoints

            with local_endpoints(machine, log) as found:
                yield found
        except ImportError as error:
            text = f"the operations of endpoints need {error.name}; {extras.install('serve')}"
            raise TaskFailed(text, is_retryable=False) from None


def _write(
    file: StepFile, access: StepAccess, machine: Machine, held: ExitStack, run: str, jobs: StepJobs | None = None
) -> None:
    """Write new tokens for processes of a run into a file, until `held` is closed."""
    secrets = machine.credentials.secrets
    tokens = [access.issue(secrets.use_tokens, may_change=each, run=run, jobs=jobs) for each in (True, False)]
    for each in tokens:
        held.callback(access.revoke, each)
        secrets.learn_token(each.token)
    held.callback(file.close)
    file.write(*tokens)


def with_api(options: Options | None) -> Options:
    """Return the options of runs whose steps reach the API, by endpoints of their own if no server starts the runs."""
    options = options or Options()
    return options if options.server else replace(options, server=Reach())


class _OwnEndpoint:
    """The socket and its server.

    Args:
        machine: The processes of the run, and the work folder with the registry.
        log: Called with each problem, as a line of text.
    """

    def __init__(self, machine: Machine, log: WriteLine) -> None:
        self._machine, self._log = machine, log
        self._listener = socket.create_server((_HOST, 0))
        self.access = StepAccess(f"http://{_HOST}:{self._listener.getsockname()[1]}")
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.Lock()
        self._server: StepServer | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._wait, name="endpoint", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        """Wait for the first call, and serve it and all others."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            selector.select()
        if self._is_closed:
            return
        try:
            from localvertex.api.steps.server import StepServer
        except ImportError as error:
            self._log(f"the steps' calls are not answered: the endpoint needs {error.name}; {extras.install('serve')}")
            self._listener.close()
            return
        server = StepServer(self._machine, self.access, self._log)
        with self._lock:
            if self._is_closed:
                return
            self._server = server
        try:
            server.run(self._listener)
        except Exception as error:  # a defect of localvertex must not look like one of the step
            self._log(f"the endpoint of the steps has ended: {type(error).__name__}: {error}")
            self._listener.close()

    def close(self) -> None:
        """Close the socket; a call that runs gets no answer."""
        with self._lock:
            self._is_closed = True
            server = self._server
        self._wake.close()
        if server is not None:
            server.stop()
        self._thread.join()
        self._listener.close()
        self._woken.close()
