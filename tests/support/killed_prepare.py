"""Runs prepare in processes that are killed with SIGKILL, at a named point or after some time.

One line of JSON on stdin is one run: `options` of prepare, and `kill`, either [MODULE, NAME, "before" or "after", N],
the N-th call of a function, or a number of seconds. The answer is the child's status as waitpid has it. All modules are
imported once, and nothing else is done before the children are forked.
"""

import importlib
import itertools
import json
import os
import signal
import sys
import time
from typing import Any

import google.cloud.storage  # type: ignore[import-untyped]  # noqa: F401
import tensorflow_datasets  # noqa: F401
from array_record.python import array_record_module  # noqa: F401

from trainer.data.preparing import parts, prefixes
from trainer.data.preparing.previous import rows as previous_rows
from trainer.prepare import prepare


def run(kill: list[Any] | float | None, options: dict[str, Any]) -> None:
    prefixes.TARGET_BYTES, parts.MAX_IMAGES, previous_rows.SETTLING_NS = 5000, 4, 0
    if isinstance(kill, list):
        _kill_at(*kill)
    prepare(**options)


def _kill_at(module: str, name: str, when: str, number: int) -> None:
    owner: Any = importlib.import_module(module)
    *above, name = name.split(".")
    for each in above:
        owner = getattr(owner, each)
    original, calls = getattr(owner, name), itertools.count(1)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        is_last = next(calls) == number
        if is_last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, wrapped)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(request["kill"], request["options"])
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        if isinstance(request["kill"], float):
            time.sleep(request["kill"])
            os.kill(child, signal.SIGKILL)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
