"""The curves of one replica: every number of its event log (docs/events.md), of training and of validation."""

from localvertex._base.json_object import JsonObject
from localvertex.jobs.goodput.progress import Event, finite, number

Point = list[float | None]
"""Step, seconds since the epoch, and a figure for each name known at that time."""

MAX_POINTS = 4000
"""Beyond these, every other point is left out; a screen has fewer columns."""


_MAX_NAMES = 30
_NO_FIGURES = {"time", "first_step", "last_step", "step", "num_steps", "is_best"}


class Curve:
    """The points of one replica; each is given out once, and all of them again after some were left out."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._trained: list[Point] = []
        self._evaluated: list[Point] = []
        self._num_events, self._stride = 0, 1
        self._num_sent = (0, 0)
        self._started_at: float | None = None
        self._resumes: list[tuple[float, int]] = []

    def add(self, event: Event) -> None:
        """Take the next event of the replica."""
        if event["event"] == "start" and self._trained:
            self._started_at = event["time"]
        if event["event"] == "restore" and self._trained:
            self._resume(event["time"], number(event, "step"))
        if event["event"] == "steps":
            if self._started_at is not None:
                self._resume(event["time"], number(event, "first_step") - 1)
            if self._num_events % self._stride == 0 and self._keep(self._trained, event, "last_step", ""):
                self._stride *= 2
            self._num_events += 1
        if event["event"] == "evaluate" and event.get("split") == "validation":
            self._keep(self._evaluated, event, "step", "validation_")

    def _keep(self, points: list[Point], event: Event, step: str, prefix: str) -> bool:
        """Keep the point of an event; return whether every other point was left out, because there were too many."""
        found = {prefix + name: finite(event, name) for name in sorted(event.keys() - _NO_FIGURES)}
        new = [name for name, value in found.items() if value is not None and name not in self._names]
        self._names += new[: _MAX_NAMES - len(self._names)]
        points.append([number(event, step), round(event["time"], 3), *map(found.get, self._names)])
        if len(points) <= MAX_POINTS:
            return False
        points[:] = points[::2]
        self._num_sent = (0, 0)
        return True

    def _resume(self, time: float, step: int) -> None:
        """Note that a process resumed from a step; what earlier ones trained beyond it is lost."""
        started = time if self._started_at is None else self._started_at
        self._resumes.append((round(started, 3), step))
        self._started_at = None

    def new(self) -> JsonObject | None:
        """Return what was not given out yet, None when that is nothing.

        `names`: of the figures of a point; early points may have fewer. `points` are of training, `evaluated` of
        validation. `is_first`: the points replace all earlier ones. `resumes`: `[time, step]` of each process that
        resumed; points before that time with a larger step are lost.
        """
        points, evaluated = self._trained[self._num_sent[0] :], self._evaluated[self._num_sent[1] :]
        is_first, self._num_sent = not any(self._num_sent), (len(self._trained), len(self._evaluated))
        found = {"names": [*self._names], "points": points, "evaluated": evaluated, "resumes": [*self._resumes]}
        return found | {"is_first": is_first} if points or evaluated else None
