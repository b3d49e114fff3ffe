"""The curves of one replica, from its event log (docs/events.md): loss, accuracy, images per second, time left."""

import itertools
import math
from typing import Any

from localvertex.jobs.goodput.progress import Event, finite, number

Point = list[float | None]
"""Step, seconds since the epoch, loss, accuracy, images per second, seconds left."""

MAX_POINTS = 2000
"""Beyond these, points that would be hidden between others are left out; a screen has fewer columns."""

_EXTREMES = (2, 3, 4)
"""The figures in a point whose extremes are kept."""

_FULL = 0.75
"""The part of `MAX_POINTS` that may remain, so that points are not left out one by one."""

_MILLISECOND = 0.001


class Curve:
    """The points of one replica; each is given out once, and all of them again after some were left out."""

    def __init__(self) -> None:
        self._points: list[tuple[int, Point]] = []
        """Each with the number of points before it, including those that were left out."""
        self._num_points = 0
        self._stride = 1
        self._sent: list[Point] = []
        self._has_new = False
        self._started_at: float | None = None
        self._resumes: list[tuple[float, int, int]] = []
        """Time, step, and the number of points before it, including those that were left out."""

    def add(self, event: Event) -> None:
        """Take the next event of the replica."""
        if event["event"] == "start" and self._points:
            self._started_at = event["time"]
        if event["event"] == "restore" and self._points:
            self._resume(event["time"], number(event, "step"))
        if event["event"] == "steps":
            if self._started_at is not None:
                self._resume(event["time"], number(event, "first_step") - 1)
            self._points.append((self._num_points, _point(event)))
            self._num_points += 1
            self._has_new = True
            if len(self._points) > MAX_POINTS:
                self._thin()

    def _resume(self, time: float, step: int) -> None:
        """Note that a process resumed from a step; what earlier ones trained beyond it is lost."""
        started = time if self._started_at is None else self._started_at
        self._resumes.append((round(started, 3), step, self._num_points))
        self._started_at = None

    def _thin(self) -> None:
        """Leave out points, but never the largest or smallest one of a group of neighbours: a spike stays.

        All groups have the same size, so the first part of the curve is as exact as the last.
        """
        while True:
            buckets = itertools.groupby(self._points, lambda each: each[0] // self._stride)
            self._points = [each for _, bucket in buckets for each in _points_to_keep([*bucket])]
            if len(self._points) < _FULL * MAX_POINTS:
                return
            self._stride *= 2

    def new(self) -> dict[str, Any] | None:
        """Return what was not given out yet, None when that is nothing.

        `is_first`: the points replace all earlier ones. `resumes`: `[time, step]` of each process that resumed; points
        before that time with a larger step are lost.
        """
        if not self._has_new:
            return None
        self._has_new = False
        points, resumes = self._in_order()
        is_first = not self._sent or points[: len(self._sent)] != self._sent
        new = points if is_first else points[len(self._sent) :]
        self._sent = points
        return {"points": new, "resumes": resumes, "is_first": is_first}

    def _in_order(self) -> tuple[list[Point], list[tuple[float, int]]]:
        """Return points and resumes with ascending times, also when the clock was set back."""
        latest = math.inf
        points, resumes, left = [], [], list(self._resumes)
        for before, (last_step, point_time, *figures) in reversed(self._points):
            # A process resumes only after an earlier one has trained: no resume is before the first point.
            while left and left[-1][2] > before:
                time, step, _ = left.pop()
                latest = min(latest - _MILLISECOND, time)
                resumes.append((latest, step))
                latest -= _MILLISECOND
            latest = min(latest, point_time or 0.0)
            points.append([last_step, latest, *figures])
        return points[::-1], resumes[::-1]


def _points_to_keep(points: list[tuple[int, Point]]) -> list[tuple[int, Point]]:
    """Return the points to keep: the extremes of each figure, the last one, and one without a loss, such as NaN."""
    found = {len(points) - 1}
    for figure in _EXTREMES:
        values = [(value, index) for index, (_, point) in enumerate(points) if (value := point[figure]) is not None]
        if values:
            found |= {min(values)[1], max(values)[1]}
    found.update([index for index, (_, point) in enumerate(points) if point[2] is None][:1])
    return [points[index] for index in sorted(found)]


def _point(event: Event) -> Point:
    """Return the point of one event; what its program does not log is None."""
    figures = [finite(event, name) for name in ("loss", "accuracy", "images_per_second", "seconds_left")]
    return [number(event, "last_step"), round(event["time"], 3), *figures]
