"""Logs in pieces: a window of any file, however large, and what is added to it."""

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.userinput.regular_files import open_regular
from localvertex.show.view.inside import is_inside
from localvertex.store.steps import logs as step_logs

MOST_BYTES = 256 << 10
"""Limit of one piece."""

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes within a character of UTF-8."""

_MAX_CONTINUATION = 3

_INVALID = "\x1a"
"""Replaces a byte that is not UTF-8, and is one byte, so that offsets stay right; shown as a replacement character."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a log."""

    text: str
    offset: int
    """Offset of its first byte."""
    end: int
    """The offset after its last byte; a character that is not complete yet is left out."""
    size: int
    """Size of the whole file."""
    inode: int


EMPTY = Piece(text="", offset=0, end=0, size=0, inode=0)


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID * (error.end - error.start), error.end


codecs.register_error("localvertex.log", _substitute)


def _decode(data: bytes, *, is_whole: bool) -> tuple[str, int]:
    """Return the text and its number of bytes; unless the data is whole, an incomplete last character is left out.

    The text has as many bytes in UTF-8 as the data.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("localvertex.log")
    text = decoder.decode(data, is_whole)
    return text, len(data) - len(decoder.getstate()[0])


def files(run_dir: Path, task: str) -> list[str]:
    """Return the names of the logs of a step of a run, relative to its folder."""
    folder = run_dir / task
    return [each.relative_to(folder).as_posix() for each in step_logs.of_step(folder) if is_inside(each, run_dir)]


def piece(
    path: Path,
    *,
    offset: int | None = None,
    before: int | None = None,
    around: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> Piece | None:
    """Read a part of a log: from, before or around an offset, by default the end; None without such a file."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            end = status.st_size if before is None else min(before, status.st_size)
            if around is not None:
                end = min(around + most_bytes // 2, end)
            start = max(0, end - most_bytes) if offset is None else min(offset, end)
            file.seek(start)
            data = file.read(min(most_bytes, end - start))
    except OSError:
        return None
    if offset is None and start > 0:
        data = _from_line(data, len(data) if around is None else max(0, around - start))
        start = end - len(data)
    text, num_bytes = _decode(data, is_whole=before is not None)
    return Piece(text=text, offset=start, end=start + num_bytes, size=status.st_size, inode=status.st_ino)


def _from_line(data: bytes, within: int) -> bytes:
    """Return the data from its first whole line, if that begins within a number of bytes, or whole character."""
    line = data.find(b"\n", 0, within) + 1
    if 0 < line < len(data):
        return data[line:]
    return data[:_MAX_CONTINUATION].lstrip(_CONTINUATION) + data[_MAX_CONTINUATION:]
