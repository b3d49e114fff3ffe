"""Forks Python steps from a process that has kfp's executor imported already, so that a step starts in milliseconds.

Started as `python fork_server.py CONNECTION` with the environment that the steps have. It imports, says so with one
byte, and forks a supervisor for each request that arrives on the socket CONNECTION; the supervisor forks the step, and
that runs `python -m kfp.dsl.executor_main` from where the imports are done. A request is a length, JSON and file
descriptors: the step's lifeline, its log, and (see supervisor.py) what is to be held. The supervisor answers on the
lifeline: one byte when the step has been forked, another with its exit code. End of file on CONNECTION ends the server.

Standard library only, no import of this package: the step's modules have to be those of a new interpreter.
"""

import gc
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
from types import ModuleType
from typing import Any

MODULE = "kfp.dsl.executor_main"

STARTED = b"\1"

MAX_FDS = 3


def load_supervisor() -> ModuleType:
    """The file beside this one, without an entry in `sys.modules` that a step would find."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py")
    spec = importlib.util.spec_from_file_location("supervisor", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(connection: socket.socket) -> dict[str, Any]:
    """Answers requests; returns in each step's process, with what that step is to run."""
    supervisor = load_supervisor()
    module = importlib.import_module(MODULE)
    # A new interpreter runs it as `__main__`, with everything it needs imported and itself not.
    del sys.modules[MODULE], sys.modules[module.__package__ or ""].executor_main
    if len(os.listdir("/proc/self/task")) > 1:
        # Something that Python loads by itself has started a thread, and a fork would not take it along.
        os._exit(1)
    # Supervisors are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Whatever is collected in a step leaves these objects, and so the memory that all share, alone.
    gc.freeze()
    connection.sendall(STARTED)
    while True:
        request, fds = receive(connection)
        if request is None:
            os._exit(0)
        if os.fork() == 0 and supervise_step(supervisor, request, fds):
            return request
        for fd in fds:
            os.close(fd)


def receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next request and its file descriptors; None when the other side has gone."""
    size, fds, _, _ = socket.recv_fds(connection, 8, MAX_FDS)
    length, text = int.from_bytes(size, "big"), bytearray()
    while len(text) < length:
        part = connection.recv(min(1 << 20, length - len(text)))
        if not part:
            break
        text += part
    return (json.loads(text) if length and len(text) == length else None), fds


def supervise_step(supervisor: ModuleType, request: dict[str, Any], fds: list[int]) -> bool:
    """Supervises a step to its end; comes back only in the step's own process."""
    lifeline, log = fds[0], fds[1]
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    close_all_but([lifeline, *fds[2:]])
    wakeup = supervisor.prepare()
    child = supervisor.fork_command(lifeline)
    if child == 0:
        close_all_but([])
        return True
    answer(lifeline, STARTED)
    code = supervisor.supervise(child, lifeline, request["grace_seconds"], wakeup)
    supervisor.clean_up(child)
    answer(lifeline, bytes([code]))
    os._exit(0)


def close_all_but(kept: list[int]) -> None:
    """Closes every file descriptor but the three standard ones and these."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:
                pass  # The one that listed the folder.


def answer(lifeline: int, text: bytes) -> None:
    """Tells the other side, if it is still there."""
    try:
        os.write(lifeline, text)
    except OSError:
        pass


def become(request: dict[str, Any]) -> None:
    """Gives this process what a new interpreter would have: signals, folder, environment, arguments, import path."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [MODULE, *request["arguments"]]
    sys.orig_argv = ["python3", "-m", MODULE, *request["arguments"]]
    if not sys.flags.safe_path:
        sys.path.insert(0, request["cwd"])
    importlib.invalidate_caches()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Put there for this file; `python -m` would have put the step's folder.
        del sys.path[0]
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
    # At the top, and in a step's process: what ends this program ends the step as it would end its own interpreter.
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
