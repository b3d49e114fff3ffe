"""Behaviour of an engine's workers in the tests: they succeed, fail, are killed, or take long."""

import dataclasses
import functools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localvertex_base.userinput.errors import UserError
from trainer.data.sources.source import SourceImage


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise UserError(f"number {number} cannot be used; give another one")


def forbid(number: int) -> int:
    raise PermissionError(13, "Permission denied", f"gs://bucket/{number}")


def fail(number: int) -> int:
    return [0][number + 1]


def kill(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def wait(folder: Path, number: int) -> int:
    """Record the process and wait forever."""
    (folder / f"{number}.waits").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


@dataclasses.dataclass
class Troubled:
    """A source with images that fail or kill the worker, or are slow, when they are first read."""

    source: Any
    notes: Path
    """A folder with a file per fault that has occurred."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def images(self) -> Iterator[SourceImage]:
        for number, image in enumerate(self.source.images()):
            trouble = {100: _slow, 2500: _fail, 3000: _slow, 9000: _kill}.get(number)
            read = functools.partial(_read, self.notes / str(number), trouble, image.read) if trouble else image.read
            yield dataclasses.replace(image, read=read)


def _read(note: Path, trouble: Any, read: Any) -> bytes:
    try:
        note.touch(exist_ok=False)
    except FileExistsError:
        return bytes(read())
    trouble()
    return bytes(read())


def _fail() -> None:
    raise RuntimeError("a passing error")


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _slow() -> None:
    time.sleep(0.5)
