"""The logs of a step in pieces: a window of any file, however large, and what is added to it."""

import codecs
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.serve.api.errors import invalid
from localvertex.serve.console.runs.folders import is_inside, step_folder
from localvertex.state.executor_files import LOG
from localvertex.state.steps import logs as step_logs

MOST_BYTES = 256 << 10
"""Of one piece."""

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes within a character of UTF-8."""

_MAX_CONTINUATION = 3


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a log."""

    text: str
    offset: int
    """Of its first byte."""
    end: int
    """The offset after its last byte; a character that is not complete yet is left out."""
    size: int
    """Of the whole file."""
    inode: int

    def as_json(self) -> dict[str, Any]:
        """Return it as routes and events contain it."""
        return {"text": self.text, "offset": self.offset, "end": self.end, "size": self.size}


def files(run_dir: Path, task: str) -> list[str]:
    """Return the names of a step's logs, relative to its folder."""
    folder = step_folder(run_dir, task)
    return [each.relative_to(folder).as_posix() for each in step_logs.of_step(folder) if is_inside(each, run_dir)]


def piece(path: Path, *, offset: int | None = None, before: int | None = None) -> Piece | None:
    """Read a part of a log: from an offset, before one, or by default the end; None when there is no such file."""
    try:
        # A step may have put a link or a pipe in its place.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            end = status.st_size if before is None else min(before, status.st_size)
            start = max(0, end - MOST_BYTES) if offset is None else min(offset, end)
            file.seek(start)
            data = file.read(min(MOST_BYTES, end - start))
    except OSError:
        return None
    if offset is None and start > 0:
        data = _from_line(data)
        start = end - len(data)
    text, num_bytes = _decoded(data, is_whole=before is not None)
    return Piece(text=text, offset=start, end=start + num_bytes, size=status.st_size, inode=status.st_ino)


def answer(run_dir: Path, task: str, name: str, offset: str, before: str) -> dict[str, Any]:
    """Return the logs of a step and a part of one of them, by default of the first.

    Raises:
        ApiError: The step or an offset is wrong.
    """
    names = files(run_dir, task)
    chosen = name or next(iter(names), LOG)
    found = None
    if chosen in names:
        path = step_folder(run_dir, task) / chosen
        found = piece(path, offset=_number("offset", offset), before=_number("before", before))
    empty = {"text": "", "offset": 0, "end": 0, "size": 0}
    return {"files": names, "file": chosen, **(found.as_json() if found else empty)}


def _from_line(data: bytes) -> bytes:
    """Return the data from its first whole line on, or from its first whole character."""
    _, newline, rest = data.partition(b"\n")
    if newline and rest:
        return rest
    return data[:_MAX_CONTINUATION].lstrip(_CONTINUATION) + data[_MAX_CONTINUATION:]


def _decoded(data: bytes, *, is_whole: bool) -> tuple[str, int]:
    """Return the text and the number of bytes in it; bytes that are not UTF-8 become replacement characters."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, is_whole)
    return text, len(data) - len(decoder.getstate()[0])


def _number(name: str, text: str) -> int | None:
    if text and not (text.isdecimal() and len(text) < 16):
        raise invalid(f"{name}={text[:100]}: expected a number of bytes")
    return int(text) if text else None
