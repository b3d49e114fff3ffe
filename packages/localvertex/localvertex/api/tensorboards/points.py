"""The points of a time series: an append-only file, one point per line after the checksum of its text.

A line counts when it is complete. Of several points with the same step the last one counts, as on the service.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine

FILE = "points"

Point = JsonObject
"""A TimeSeriesDataPoint in the API's JSON."""


def append(additions: Mapping[Path, list[Point]]) -> None:
    """Add points to the files of several time series, to all or to none. Hold a lock.

    Raises:
        OSError: A file cannot be written.
    """
    sizes: dict[Path, int] = {}
    try:
        for path, points in additions.items():
            path.parent.mkdir(exist_ok=True)
            sizes[path] = _drop_torn_line(path)
            texts = [json.dumps(point).encode() for point in points]
            with path.open("ab") as file:
                file.writelines(_checksum(text) + text + b"\n" for text in texts)
    except OSError:
        for path, size in sizes.items():
            with suppress(OSError):
                os.truncate(path, size)
        raise


def read(path: Path, report: WriteLine) -> list[Point]:
    """Return the points ordered by step, without damaged lines, which are reported together."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    points = [json.loads(line[9:]) for line in lines if len(line) > 9 and line[:9] == _checksum(line[9:])]
    if len(points) < len(lines):
        report(f"{path} is damaged: {len(lines) - len(points)} of {len(lines)} lines are left out of the time series")
    # The API's JSON omits 0.
    by_step = {int(point.get("step", 0)): point for point in points}
    return [by_step[step] for step in sorted(by_step)]


def _checksum(text: bytes) -> bytes:
    """Return the beginning of a line."""
    return b"%08x " % crc32(text)


def _drop_torn_line(path: Path) -> int:
    """Cut off what a killed process left after the last whole line, and return the size."""
    try:
        with path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            if file.read(1) not in (b"", b"\n"):
                file.seek(0)
                size = file.truncate(file.read().rfind(b"\n") + 1)
            return size
    except FileNotFoundError:
        return 0
