"""A process that starts the servers of tests: it imports what a server needs once, and forks each server.

Each line of its standard input is a JSON list: the folder of a server, its arguments and its environment variables. It
prints the process id. A server writes to serve.log in its folder, and ends with this process, which ends when its input
is closed, hence even if pytest is killed.
"""

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

from localvertex._base import linux

_IMPORTED = ("google.cloud.aiplatform_v1", "google.protobuf.json_format", "localvertex.commands.server")
"""Modules that a server imports at its start or at its first requests."""


def main() -> None:
    """Start servers until the input is closed."""
    linux.end_with_parent()
    for name in _IMPORTED:
        import_module(name)
    # The id of a server that has ended is free at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        # No thread runs here, so that a fork is safe.
        if not (server := os.fork()):
            _serve(*json.loads(line))
        print(server, flush=True)


def _serve(folder: str, arguments: list[str], variables: Any) -> None:
    code = 1
    try:
        linux.end_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open("serve.log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.clear()
        os.environ.update(variables)
        code = import_module("localvertex.__main__").main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
