"""The points of a time series: an append-only file, one point per line after the checksum of its text.

A line counts when it is complete. Of several points with the same step the last one counts, as on the service.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

FILE = "points"

Point = dict[str, Any]
"""A TimeSeriesDataPoint in the API's JSON."""


def step_of(point: Point) -> int:
    """Return the step of a point; the API's JSON omits 0."""
    return int(point.get("step", 0))


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
            with path.open("ab") as file:
                file.writelines(_line(point) for point in points)
    except OSError:
        for path, size in sizes.items():
            with suppress(OSError):
                os.truncate(path, size)
        raise


def read(path: Path, report: Callable[[str], None]) -> list[Point]:
    """Return the points ordered by step, without damaged lines, which are reported together."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    points = [json.loads(line[9:]) for line in lines if len(line) > 9 and line[:9] == _checksum(line[9:])]
    if len(points) < len(lines):
        report(f"{path} is damaged: {len(lines) - len(points)} of {len(lines)} lines are left out of the time series")
    by_step = {step_of(point): point for point in points}
    return [by_step[step] for step in sorted(by_step)]


def summary(path: Path) -> dict[str, str]:
    """Return the `metadata` of the time series, empty without points."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return {}
    return dict(_summary(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns)))


@lru_cache(maxsize=10_000)
def _summary(path: Path, _: tuple[int, ...]) -> dict[str, str]:
    """Return the summary of a file in this state."""
    points = read(path, lambda _: None)
    if not points:
        return {}
    found = {"maxStep": str(step_of(points[-1]))}
    times = [point["wallTime"] for point in points if "wallTime" in point]
    if times:
        found["maxWallTime"] = max(times, key=datetime.fromisoformat)
    num_blobs = max(len(point.get("blobs", {}).get("values", [])) for point in points)
    return found | ({"maxBlobSequenceLength": str(num_blobs)} if num_blobs else {})


def _checksum(text: bytes) -> bytes:
    """Return the beginning of a line."""
    return b"%08x " % crc32(text)


def _line(point: Point) -> bytes:
    text = json.dumps(point).encode()
    return _checksum(text) + text + b"\n"


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
