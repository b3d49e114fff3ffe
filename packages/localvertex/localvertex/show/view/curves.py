"""The curves of one replica, from its event log (docs/events.md): loss, accuracy, images per second, time left."""

from typing import Any

from localvertex.jobs.goodput.progress import Event, finite, number

Point = list[float | None]
"""Step, seconds since the epoch, loss, accuracy, images per second, seconds left."""

MAX_POINTS = 4000
"""Beyond these, every other point is left out; a screen has fewer columns."""


class Curve:
    """The points of one replica; each is given out once, and all of them again after some were left out."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._num_events, self._stride = 0, 1
        self._num_sent = 0
        self._started_at: float | None = None
        self._resumes: list[tuple[float, int]] = []

    def add(self, event: Event) -> None:
        """Take the next event of the replica."""
        if event["event"] == "start" and self._points:
            self._started_at = event["time"]
        if event["event"] == "restore" and self._points:
            self._resume(event["time"], number(event, "step"))
        if event["event"] == "steps":
            if self._started_at is not None:
                self._resume(event["time"], number(event, "first_step") - 1)
            if self._num_events % self._stride == 0:
                self._points.append(_point(event))
            self._num_events += 1
            if len(self._points) > MAX_POINTS:
                self._points = self._points[::2]
                self._stride *= 2
                self._num_sent = 0

    def _resume(self, time: float, step: int) -> None:
        """Note that a process resumed from a step; what earlier ones trained beyond it is lost."""
        started = time if self._started_at is None else self._started_at
        self._resumes.append((round(started, 3), step))
        self._started_at = None

    def new(self) -> dict[str, Any] | None:
        """Return what was not given out yet, None when that is nothing.

        `is_first`: the points replace all earlier ones. `resumes`: `[time, step]` of each process that resumed; points
        before that time with a larger step are lost.
        """
        new, is_first = self._points[self._num_sent :], self._num_sent == 0
        self._num_sent = len(self._points)
        return {"points": new, "resumes": [*self._resumes], "is_first": is_first} if new else None


def _point(event: Event) -> Point:
    """Return the point of one event; what its program does not log is None."""
    figures = [finite(event, name) for name in ("loss", "accuracy", "images_per_second", "seconds_left")]
    return [number(event, "last_step"), round(event["time"], 3), *figures]
