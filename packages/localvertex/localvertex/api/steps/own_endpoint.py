"""The endpoint of a run that no server has started: a socket on the loopback interface, served from the first call on.

Only this process has the socket, so that nothing listens when it has ended, however that was.
"""

import selectors
import socket
import threading
from typing import TYPE_CHECKING

from localvertex._base import extras
from localvertex._base.lines import WriteLine
from localvertex.api.access.step_access import StepAccess
from localvertex.containers.serving.machine import Machine

if TYPE_CHECKING:
    from localvertex.api.steps.server import StepServer

_HOST = "127.0.0.1"


class OwnEndpoint:
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
