"""Fork Python steps from a process that has already imported kfp's executor, so that a step starts in milliseconds.

Started as `python fork_server.py CONNECTION` with the environment of the steps. It imports kfp's executor, confirms it
with one byte, and forks a supervisor for each request on the socket CONNECTION. The supervisor forks the step, which
runs `python -m kfp.dsl.executor_main` with the imports already done. A request is a length, JSON and file descriptors:
the step's lifeline, its log, and the descriptor to hold open (see supervisor.py). The supervisor answers on the
lifeline: one byte when the step has been forked, another with its exit code. End of file on CONNECTION ends the server.

Standard library only, no import of this package: a step must find its modules as in a new interpreter.
"""

import ctypes  # noqa: F401 - once here, and not in each supervisor
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

_MODULE = "kfp.dsl.executor_main"

_STARTED = b"\1"

_MAX_FDS = 3


def _load_supervisor() -> ModuleType:
    """Load supervisor.py from this folder, without an entry in `sys.modules` that a step would find."""
    module = ModuleType("supervisor")
    module.__file__ = os.path.abspath(f"{__file__}/../supervisor.py")
    SourceFileLoader(module.__name__, module.__file__).exec_module(module)
    return module


def _serve(connection: socket.socket) -> dict[str, Any]:
    """Answer requests; return only in each step's process, with the request of that step."""
    supervisor = _load_supervisor()
    module = importlib.import_module(_MODULE)
    # A new interpreter runs the module as `__main__`, so all but the module itself stays imported.
    del sys.modules[_MODULE], sys.modules[module.__package__ or ""].executor_main
    if supervisor.linux.num_threads() > 1:
        # Something that Python loads by itself has started a thread, which a fork would not copy.
        os._exit(1)
    # Supervisors are reaped automatically.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Garbage collection in a step must not touch these objects, so that their memory stays shared.
    gc.freeze()
    connection.sendall(_STARTED)
    while True:
        request, fds = _receive(connection)
        if request is None:
            os._exit(0)
        if os.fork() == 0 and _supervise_step(supervisor, request, fds):
            return request
        for fd in fds:
            os.close(fd)


def _receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next request and its file descriptors; None when the client has closed the connection."""
    size, fds, _, _ = socket.recv_fds(connection, 8, _MAX_FDS)
    length, text = int.from_bytes(size, "big"), bytearray()
    while len(text) < length:
        part = connection.recv(min(1 << 20, length - len(text)))
        if not part:
            break
        text += part
    return (json.loads(text) if length and len(text) == length else None), fds


def _supervise_step(supervisor: ModuleType, request: dict[str, Any], fds: list[int]) -> bool:
    """Supervise a step to its end; return only in the step's own process."""
    lifeline, log = fds[0], fds[1]
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    _close_all_but([lifeline, *fds[2:]])
    wakeup = supervisor.prepare()
    child = supervisor.fork_command(lifeline)
    if child == 0:
        _close_all_but([])
        return True
    _answer(lifeline, _STARTED)
    code = supervisor.supervise(child, lifeline, request["grace_seconds"], wakeup)
    supervisor.clean_up(child)
    _answer(lifeline, bytes([code]))
    os._exit(0)


def _close_all_but(kept: list[int]) -> None:
    """Close every file descriptor except the three standard ones and these."""
    for name in os.listdir("/dev/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:
                pass  # The descriptor that listed the folder.


def _answer(lifeline: int, text: bytes) -> None:
    """Send an answer to the client, if it is still connected."""
    try:
        os.write(lifeline, text)
    except OSError:
        pass


def _become(request: dict[str, Any]) -> None:
    """Set up this process as a new interpreter: signals, folder, environment, arguments, import path."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [_MODULE, *request["arguments"]]
    sys.orig_argv = ["python3", "-m", _MODULE, *request["arguments"]]
    sys.path[:0] = request["import_path"] if sys.flags.safe_path else [request["cwd"], *request["import_path"]]
    importlib.invalidate_caches()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Python added it for this file; `python -m` would have added the step's folder.
        del sys.path[0]
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
    # At module level, and in a step's process: an exit ends the step exactly as in its own interpreter.
    runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)
