"""The curves of one replica, from its event log (docs/events.md): loss, accuracy, images per second, time left."""

from typing import Any

from localvertex.custom_jobs.goodput import thinning
from localvertex.custom_jobs.goodput.progress import Event, finite, number

Point = list[float | None]
"""Step, seconds since the epoch, loss, accuracy, images per second, seconds left."""

MAX_POINTS = 2000
"""Beyond these, neighbours are joined; a screen has fewer columns."""


class Curve:
    """The points of one replica; each is given out once, and all of them again after they were thinned out."""

    def __init__(self) -> None:
        self._steps: list[Event] = []
        self._num_sent = 0
        self._is_first = True
        self._started_at: float | None = None
        self._resumes: list[tuple[float, int]] = []

    def add(self, event: Event) -> None:
        """Take the next event of the replica."""
        if event["event"] == "start" and self._steps:
            self._started_at = event["time"]
        if event["event"] == "restore" and self._steps:
            self._resume(event["time"], number(event, "step"))
        if event["event"] == "steps":
            if self._started_at is not None:
                self._resume(event["time"], number(event, "first_step") - 1)
            self._steps.append(event)
            if len(self._steps) > MAX_POINTS:
                self._thin()

    def _resume(self, time: float, step: int) -> None:
        """Note that a process resumed from a step; what earlier ones trained beyond it is lost."""
        self._resumes.append((self._started_at or time, step))
        self._started_at = None

    def _thin(self) -> None:
        thinned = thinning.thinned(self._steps)
        # Events whose steps do not follow each other cannot be joined.
        self._steps = thinned if len(thinned) < 0.75 * MAX_POINTS else self._steps[1::2]
        self._is_first, self._num_sent = True, 0

    def new(self) -> dict[str, Any] | None:
        """Return what was not given out yet, None when that is nothing.

        `is_first`: the points replace all earlier ones. `resumes`: `[time, step]` of each process that resumed; points
        before that time with a larger step are lost.
        """
        new, is_first = self._steps[self._num_sent :], self._is_first
        if not new:
            return None
        self._num_sent, self._is_first = len(self._steps), False
        return {"points": [_point(each) for each in new], "resumes": self._resumes, "is_first": is_first}


def _point(event: Event) -> Point:
    """Return the point of one event; what its program does not log is None."""
    figures = [finite(event, name) for name in ("loss", "accuracy", "images_per_second", "seconds_left")]
    return [number(event, "last_step"), round(event["time"], 3), *figures]
