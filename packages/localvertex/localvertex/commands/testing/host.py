"""A process that starts the servers of tests: it imports what a server needs once, and forks each server.

One JSON text per line of its standard input, one number per line of its output:

    {"start": ["serve", ...], "environment": {...}, "folder": "..."}    the process id of a new server
    {"poll": 1234}                                                      its exit code; -1 while it runs
    {"stop": 1234}                                                      the same, after it has been ended

A server writes to serve.log in its folder. All servers end with this process, which ends when its input is closed,
hence also when pytest is killed.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from importlib import import_module
from typing import Any

from localvertex_base import linux

_IMPORTED = ("google.cloud.aiplatform_v1", "google.protobuf.json_format", "localvertex.commands.server")
"""What a server imports at its start or at its first requests."""
LOG = "serve.log"
RUNNING = -1
POLL_SECONDS = 0.01
_STOP_SECONDS = 20.0


def main() -> None:
    """Answer requests until the input is closed, then end the servers that are left."""
    linux.end_with_parent()
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    codes: dict[int, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = _start(request)
            codes[answer] = RUNNING
        else:
            answer = _code(request.get("poll") or request["stop"], codes, stops="stop" in request)
        print(answer, flush=True)
    for each in codes:
        _code(each, codes, stops=True)


def _code(server: int, codes: dict[int, int], *, stops: bool) -> int:
    """Return the exit code of a server, or `RUNNING`."""
    deadline = time.monotonic() + _STOP_SECONDS
    signals = iter((signal.SIGTERM,) if stops else ())
    while codes[server] == RUNNING:
        found, status = os.waitpid(server, os.WNOHANG)
        if found:
            codes[server] = os.waitstatus_to_exitcode(status)
        elif not stops:
            break
        else:
            is_late = time.monotonic() > deadline
            os.kill(server, signal.SIGKILL if is_late else next(signals, 0))
            time.sleep(POLL_SECONDS)
    return codes[server]


def _start(request: dict[str, Any]) -> int:
    """Fork a server and return its process id; nothing here runs threads yet, so that a fork is safe."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        linux.end_with_parent()
        os.chdir(request["folder"])
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(source, descriptor)
        os.environ.clear()
        os.environ.update(request["environment"])
        code = import_module("localvertex.__main__").main(request["start"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
