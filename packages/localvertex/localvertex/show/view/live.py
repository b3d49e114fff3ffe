"""A custom job as the console follows it: from its entry in the record of the run, and the event logs of its replicas.

There is no other source of state: a reader that starts later, or after the job, sees the same.
"""

import time
from dataclasses import asdict
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.jobs.faults.faults import ALL, Action
from localvertex.jobs.goodput.event_files import EventFiles, EventLog
from localvertex.jobs.goodput.goodput import add_up, goodput
from localvertex.jobs.goodput.progress import Event, finite, number
from localvertex.jobs.goodput.timeline import Span
from localvertex.jobs.status import FINAL_STATES, MISSED, EventKind, JobState
from localvertex.show.view import shape

Point = list[float | None]
"""Step, seconds since the epoch, and a figure for each name known at that time."""

MAX_POINTS = 4000
"""Above this number, every other point is left out; a screen has fewer columns."""


_MAX_NAMES = 30
_NO_FIGURES = {"time", "first_step", "last_step", "step", "num_steps", "is_best"}


class Curve:
    """The points of one replica; each is sent once, and all of them again after some were left out."""

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


Message = tuple[str, JsonObject]
"""The name of an event of the stream, and its content."""

_SECONDS = 1.0
"""Interval between two messages about a job that trains."""

_IDLE_SECONDS = 5.0
"""Time between two messages about an idle job."""

_CONDITIONS = {Action.SIGSTOP: "frozen", Action.PREEMPT: "leaving", Action.MAINTENANCE: "leaving"}
"""Condition of a replica after a fault, as docs/console.md names it."""


class LiveJob:
    """Follows the custom job of one task for one reader, such as an event stream; `poll` returns what is new.

    Args:
        task: The path of the task; empty for a custom job of the API.
    """

    def __init__(self, task: str = "") -> None:
        self._task = task
        self._logs: list[Any] = []
        self._events = EventFiles({})
        self._curves: dict[str, Curve] = {}
        self._shown: Any = None
        self._shown_at = 0.0

    def poll(self, status: JsonObject | None, *, is_running: bool) -> list[Message]:
        """Return the messages that are due: `job` with everything about the job, `steps` with new points.

        Args:
            status: The field `custom_job` of the task's entry.
            is_running: Whether a process runs the job; if none does, a job without an end was killed.
        """
        if not status or not shape.is_custom_job(status):
            return []
        self._follow(status)
        has_trained = self._events.poll()
        now = time.time()
        stalled = status.get("stalled", "")
        # What changes when a process starts or ends, and not with each step.
        processes = [(each["is_running"], each["num_starts"], each["exit_code"]) for each in status["replicas"]]
        shown = (is_running, status["state"], len(status.get("events", [])), stalled, processes)
        # If the clock was set back, the time since then is negative.
        is_due = is_running and not 0 <= now - self._shown_at < (_SECONDS if has_trained else _IDLE_SECONDS)
        messages: list[Message] = []
        if shown != self._shown or is_due:
            self._shown, self._shown_at = shown, now
            messages.append(("job", self._job(status, is_running=is_running, now=now)))
        for name, curve in self._curves.items():
            if new := curve.new():
                messages.append(("steps", {"task": self._task, "replica": name, **new}))
        return messages

    def _follow(self, status: JsonObject) -> None:
        """Begin again when this is another job than before: the next attempt at a step has its own events."""
        logs = [(each["name"], each.get("event_log")) for each in status["replicas"]]
        if logs == self._logs:
            return
        self._logs, self._shown = logs, None
        self._events = EventFiles({name: EventLog(**log) if log else None for name, log in logs})
        self._curves = {name: Curve() for name, _ in logs}
        self._events.listen = lambda name, event: self._curves[name].add(event)

    def _job(self, status: JsonObject, *, is_running: bool, now: float) -> JsonObject:
        """Return the message about the job; times are seconds from its start, which is `start` of the status."""
        events: list[JsonObject] = status.get("events", [])
        spans = {each["name"]: [Span(**span) for span in each.get("spans", [])] for each in status["replicas"]}
        # The primary replica is the first that started; of the trials of a tuning job any is.
        spans = {name: found for name, found in sorted(spans.items(), key=_start) if found}
        end = now if is_running else self._last(spans, events)
        found: JsonObject = dict(status.get("goodput") or {})
        if spans and (not found or "num_trials" in found):
            restarts = status.get("num_restarts", 0)
            every = goodput(spans, self._events, num_failures=restarts, end=end)
            trials = self._trials(spans, end)
            # All trials share the axis of the timeline. The record has the sum of the trials that have ended.
            found = add_up([found, *trials] if found else trials) | {"timeline": every["timeline"]} if trials else every
        timeline = found.pop("timeline", {})
        state = status["state"] if is_running or status["state"] in FINAL_STATES else JobState.FAILED
        start = min((each[0].start for each in spans.values()), default=None)
        replicas = [self._replica(each, spans, events, is_running=is_running) for each in status["replicas"]]
        shown = {name: status.get(name) for name in ("num_restarts", "num_preemptions")}
        shown["stalled"] = status.get("stalled", "") if is_running else ""
        return {
            "task": self._task,
            "status": {"state": state, "is_running": is_running, "start": start, **shown, "replicas": replicas},
            "timeline": timeline,
            "goodput": found,
            "events": [each | {"time": round(max(each["time"] - (start or 0.0), 0.0), 3)} for each in events],
        }

    def _trials(self, spans: dict[str, list[Span]], end: float) -> list[JsonObject]:
        """Return the goodput so far of each running trial of a tuning job; nothing for other jobs."""
        trials: dict[str, dict[str, list[Span]]] = {}
        for name, own in spans.items():
            if "/" in name:
                trials.setdefault(name.rpartition("/")[0], {})[name] = own
        return [goodput(each, self._events, num_failures=0, end=end) for each in trials.values()]

    def _last(self, spans: dict[str, list[Span]], events: list[JsonObject]) -> float:
        """Return the last time at which a job that has no end was seen."""
        times = [max(span.start, span.end or 0.0) for each in spans.values() for span in each]
        times += [each["time"] for each in events]
        times += [self._events.of(name)[-1]["time"] for name in spans if self._events.of(name)]
        return max(times, default=0.0)

    def _replica(
        self, entry: JsonObject, spans: dict[str, list[Span]], events: list[JsonObject], *, is_running: bool
    ) -> JsonObject:
        """Return what the page shows of a replica; `condition` is one of the words of docs/console.md."""
        name, own = entry["name"], spans.get(entry["name"], [])
        fields = ("name", "num_starts", "exit_code", "step", "num_steps", "memory")
        shown = {field: entry.get(field) for field in (*fields, "loss", "accuracy")}
        if self._events.progress(name).num_steps:
            shown |= asdict(self._events.progress(name))
        codes = [span.exit_code for span in own if span.end is not None]
        is_alive = bool(entry.get("is_running")) and is_running
        condition = _condition(name, own, events, is_alive=is_alive, code=entry.get("exit_code"))
        if condition == "stopped" and is_running:
            condition = "waiting"
        return shown | {"is_running": is_alive, "condition": condition, "exit_codes": codes}


def _start(item: tuple[str, list[Span]]) -> float:
    return item[1][0].start if item[1] else 0.0


def _condition(name: str, spans: list[Span], events: list[JsonObject], *, is_alive: bool, code: int | None) -> str:
    """Return running, frozen, leaving, done or stopped."""
    if not is_alive:
        return "done" if code == 0 else "stopped"
    since = spans[-1].start if spans else 0.0
    faults = {
        each["action"]
        for each in events
        if each["kind"] == EventKind.FAULT
        and each["phase"] != MISSED
        and each["replica"] in (name, ALL)
        and each["time"] >= since
    }
    return next((_CONDITIONS[each] for each in _CONDITIONS if each in faults), "running")
