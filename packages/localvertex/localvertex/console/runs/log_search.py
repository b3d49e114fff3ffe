"""Searches a log for lines with a text, as the page shows them."""

import os
import re
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex.api.rest.errors import invalid
from localvertex.console.runs import logs
from localvertex_base.userinput.regular_files import open_regular

_MAX_CHARACTERS = 200
"""Of the text that is searched for."""

_MAX_BYTES = 64 << 20
"""At the end of a larger log; the rest is not searched."""

_MAX_LINE_BYTES = 1 << 20
"""A longer line is searched in parts."""

_MAX_MATCHES = 10_000
"""The last ones."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[@-_]")
"""The same as in page/logs/text.js, so that a search finds what is shown."""


def answer(run_dir: Path, task: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the offsets of the lines with a text, whatever its case; the log before `begin` was not searched.

    Raises:
        ApiError: The step or the text is wrong.
    """
    text = query.get("search", "")
    if not 0 < len(text) <= _MAX_CHARACTERS or "\n" in text:
        raise invalid(f"search has {len(text)} characters: expected 1 to {_MAX_CHARACTERS}, in one line")
    path = logs.path_of(run_dir, task, query.get("file", ""))
    matches: deque[int] = deque(maxlen=_MAX_MATCHES)
    size = begin = 0
    with suppress(OSError):
        if path:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
                begin = max(0, size - _MAX_BYTES)
                file.seek(begin)
                offset = begin = begin + len(file.readline(_MAX_LINE_BYTES)) if begin else 0
                while offset < size and (line := file.readline(_MAX_LINE_BYTES)):
                    if text.lower() in _ESCAPES.sub("", line.decode(errors="replace")).lower():
                        matches.append(offset)
                    offset += len(line)
    return {"matches": [*matches], "begin": begin, "size": size}
