"""Searches a log as the page shows it, in blocks: a file of any size takes little memory, and an answer little time."""

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from localvertex.api.rest.errors import invalid
from localvertex.console.runs import log_text, logs
from localvertex_base.userinput.regular_files import open_regular

_MAX_CHARACTERS = 200
"""Of the text that is searched for."""

_BLOCK_BYTES = 256 << 10

_OVERLAP_BYTES = 8 << 10
"""Read beyond the end of a block, for a match that begins in it, if a line is longer than a block."""

_ENOUGH_MATCHES, _ENOUGH_SECONDS = 1000, 0.25
"""After these, an answer has no further block."""


@dataclass(frozen=True, kw_only=True)
class _Block:
    """The matches in a part of a log."""

    begin: int
    """Where it begins: at a line, except in very long ones."""
    end: int
    """Where the next block begins; matches in a line that may still grow are beyond it."""
    matches: list[int]
    is_last: bool
    """Whether it reaches the beginning of the file, or its end."""


def answer(run_dir: Path, task: str, query: Any) -> dict[str, Any]:
    """Return the offsets of the matches in a part of a log: before an offset, after one, or by default before the end.

    The search continues before `begin` and after `end`; `is_last` is whether nothing is left to read.

    Raises:
        ApiError: The step, the text or an offset is wrong.
    """
    text = query.get("search", "")
    if not 0 < len(text) <= _MAX_CHARACTERS or "\n" in text:
        raise invalid(f"search has {len(text)} characters: expected 1 to {_MAX_CHARACTERS}, in one line")
    pattern = re.compile(re.escape(text), re.IGNORECASE | (re.ASCII if text.isascii() else 0))
    offset, before = (logs.number(name, query.get(name, "")) for name in ("offset", "before"))
    path = logs.path_of(run_dir, task, query.get("file", ""))
    found: list[_Block] = []
    size = inode = 0
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        if path:
            file = stack.enter_context(open_regular(path))
            status = os.fstat(file.fileno())
            size, inode = status.st_size, status.st_ino
            end = size if before is None else min(before, size)
            found = _enough(_backward(file, pattern, end) if offset is None else _forward(file, pattern, offset))
    return {
        "matches": sorted(match for each in found for match in each.matches),
        "begin": min((each.begin for each in found), default=0),
        "end": max((each.end for each in found), default=0),
        "is_last": not found or found[-1].is_last,
        "size": size,
        "inode": inode,
    }


def _enough(blocks: Iterator[_Block]) -> list[_Block]:
    """Return the next blocks, until an answer has enough of them."""
    found: list[_Block] = []
    num_matches, end = 0, time.monotonic() + _ENOUGH_SECONDS
    for block in blocks:
        found.append(block)
        num_matches += len(block.matches)
        if num_matches >= _ENOUGH_MATCHES or time.monotonic() > end:
            break
    return found


def _backward(file: BinaryIO, pattern: re.Pattern[str], before: int) -> Iterator[_Block]:
    while True:
        start = max(0, before - _BLOCK_BYTES)
        file.seek(start)
        data = file.read(before - start + _OVERLAP_BYTES)
        size = min(len(data), before - start)
        begin = start and _begin(data, size)
        matches = [start + each for each in _matches(data, begin, size, pattern)]
        # Zero in a longer line: the next search then begins where this block begins.
        line = data.rfind(b"\n", begin, size) + 1
        yield _Block(begin=start + begin, end=start + max(begin, line), matches=matches, is_last=start == 0)
        if not start:
            return
        before = start + begin


def _forward(file: BinaryIO, pattern: re.Pattern[str], offset: int) -> Iterator[_Block]:
    is_last = False
    while not is_last:
        file.seek(offset)
        data = file.read(_BLOCK_BYTES + _OVERLAP_BYTES)
        is_last = len(data) < _BLOCK_BYTES + _OVERLAP_BYTES
        line = data.rfind(b"\n", 0, len(data) if is_last else _BLOCK_BYTES) + 1
        end = line if line or is_last else _BLOCK_BYTES + logs.num_continuation(data[_BLOCK_BYTES:])
        matches = [offset + each for each in _matches(data, 0, len(data) if is_last else end, pattern)]
        yield _Block(begin=offset, end=offset + end, matches=matches, is_last=is_last)
        offset += end


def _begin(data: bytes, size: int) -> int:
    """Return where the first whole line begins, or the first whole character in a line that is longer."""
    line = data.find(b"\n", 0, size - 1) + 1
    return line or logs.num_continuation(data)


def _matches(data: bytes, begin: int, end: int, pattern: re.Pattern[str]) -> Iterator[int]:
    """Yield the offsets of the matches that begin in a part of the data."""
    text, _ = log_text.decode(data[begin:], is_whole=True)
    shown = log_text.displayed_lines(text)
    columns = (match.start() for match in pattern.finditer(shown))
    offset, last = begin, 0
    for index in columns if shown == text else _indices(columns, shown, text):
        offset += len(text[last:index].encode())
        last = index
        if offset >= end:
            return
        yield offset


def _indices(columns: Iterator[int], shown: str, text: str) -> Iterator[int]:
    """Return the indices in a text of characters by their indices in what is shown of it; both have the same lines."""
    lines = text.split("\n")
    line = shown_start = start = seen = 0

    def line_of(column: int) -> int:
        nonlocal line, shown_start, start, seen
        if num_lines := shown.count("\n", seen, column):
            start += sum(len(each) + 1 for each in lines[line : line + num_lines])
            line, shown_start = line + num_lines, shown.rfind("\n", 0, column) + 1
        seen = column
        return line

    for number, of_line in itertools.groupby(columns, line_of):
        yield from (start + each for each in log_text.indices((at - shown_start for at in of_line), lines[number]))
