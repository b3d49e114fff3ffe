"""Sends the output of a process to its log, through a masker if the run has secrets."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localvertex.processes import logs

_MASKER = str(Path(__file__).with_name("masker.py"))

MASK = "(secret removed)"

_SECONDS_TO_END = 10.0
"""Time for a masker to write the rest after its last writer has ended."""


@dataclass(frozen=True, kw_only=True)
class Sink:
    """The open end of a log, for one process and its descendants."""

    fd: int
    masker: "subprocess.Popen[bytes] | None" = None

    def wait(self) -> None:
        """Wait until everything that was written is in the log."""
        if self.masker is not None:
            try:
                self.masker.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                pass  # A process that the supervisor cannot reach still writes.


@contextmanager
def opened(log: Path, secrets: list[str], holds: Sequence[int]) -> Iterator[Sink]:
    """Open a log; inside the context a process inherits `fd`.

    Args:
        log: The file to append to.
        secrets: Texts that the log must not contain.
        holds: File descriptors to keep open until everything is in the log.

    Raises:
        OSError: The log cannot be opened, or a step put a link or a pipe in its place.
    """
    with logs.opened(log) as file:
        if not secrets:
            yield Sink(fd=file.fileno())
            return
        reader, writer = os.pipe()
        try:
            masker = _start_masker(reader, file.fileno(), secrets, holds)
        finally:
            os.close(reader)
        try:
            yield Sink(fd=writer, masker=masker)
        finally:
            os.close(writer)


def _start_masker(reader: int, log: int, secrets: list[str], holds: Sequence[int]) -> "subprocess.Popen[bytes]":
    out, into = os.pipe()
    try:
        masker = subprocess.Popen(
            [sys.executable, "-I", "-S", _MASKER, str(out), MASK],
            stdin=reader,
            stdout=log,
            pass_fds=[out, *holds],
            start_new_session=True,
        )
    finally:
        os.close(out)
    with open(into, "wb") as file:
        file.write(json.dumps(secrets).encode())
    return masker
