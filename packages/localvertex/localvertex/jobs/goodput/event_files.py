"""Follows the event logs that the replicas of a job write (docs/events.md)."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.userinput.shape import LARGEST
from localvertex.jobs.goodput.progress import LARGEST_FIGURE, Event, Progress, finite, number

_CHUNK_BYTES, _MAX_CHUNKS = 4 << 20, 256
"""Bytes per read, and reads per replica and call: a file may have any size, and grow faster than it is read."""

_MAX_LINE_BYTES = 1 << 20
"""Limit of an event; a longer line is not an event, and is not kept."""

MAX_EVENTS = 2000
"""Above this number, neighbouring `steps` events are joined in pairs."""


@dataclass(frozen=True, kw_only=True)
class EventLog:
    """The part of a replica's event log that belongs to one job."""

    path: str
    offset: int
    """Bytes of earlier jobs."""


class EventFiles:
    """The events of each replica of one job; thinned out if the training is long.

    Args:
        logs: Where the events of each replica are; None for one whose events cannot be read.
    """

    def __init__(self, logs: Mapping[str, EventLog | None]) -> None:
        self._logs = dict(logs)
        self._offsets = {name: log.offset for name, log in logs.items() if log}
        self._events: dict[str, list[Event]] = {name: [] for name in logs}
        self._limits = dict.fromkeys(logs, MAX_EVENTS)
        self._progress = dict.fromkeys(logs, Progress())
        self._first_steps: dict[str, Event] = {}
        self.listen: Callable[[str, Event], None] = lambda name, event: None
        """Called with the name of the replica and each new event."""

    @classmethod
    def of_job(cls, base_output_directory: str, names: list[str]) -> "EventFiles":
        """Follow a job that starts now; an earlier one may have left events, which do not belong to it."""
        if not base_output_directory or "://" in base_output_directory:
            return cls(dict.fromkeys(names))
        files = {name: Path(base_output_directory) / "checkpoints" / "events" / f"{name}.jsonl" for name in names}
        return cls({name: EventLog(path=str(file), offset=_size(file)) for name, file in files.items()})

    def poll(self) -> bool:
        """Read new events; return whether any replica has trained further."""
        has_trained = False
        for name, log in self._logs.items():
            if log is None or _size(Path(log.path)) <= self._offsets[name]:
                continue
            for event in self._new(name, Path(log.path)):
                if event["event"] == "start":
                    self._first_steps.pop(name, None)
                if event["event"] == "steps":
                    self._progress[name] = Progress.after(event, self._first_steps.setdefault(name, event))
                    event["seconds_left"] = self._progress[name].seconds_left
                    has_trained = True
                self._keep(name, event)
        return has_trained

    def of(self, name: str) -> list[Event]:
        """Return the events of a replica, in the order of its file."""
        return self._events[name]

    def progress(self, name: str) -> Progress:
        """Return how far a replica's training is."""
        return self._progress[name]

    def log(self, name: str) -> EventLog | None:
        """Return where the events of a replica are."""
        return self._logs[name]

    def _keep(self, name: str, event: Event) -> None:
        events = self._events[name]
        events.append(event)
        if len(events) > self._limits[name]:
            events[:] = thin_out(events)
            # Twice as much as could not be joined, so that the work per event stays the same.
            self._limits[name] = max(MAX_EVENTS, 2 * len(events))
        self.listen(name, event)

    def _new(self, name: str, file: Path) -> Iterator[Event]:
        """Read the complete lines that are new; a line without its end may still be growing."""
        try:
            # Replicas can put a pipe in its place, whose opening would wait.
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
                stream.seek(self._offsets[name])
                rest = b""
                for _ in range(_MAX_CHUNKS):
                    if not (data := stream.read(_CHUNK_BYTES)):
                        break
                    whole, end, rest = (rest + data).rpartition(b"\n")
                    self._offsets[name] += len(whole + end)
                    yield from (event for line in whole.splitlines() if (event := _read(line)) is not None)
                    if len(rest) > _MAX_LINE_BYTES:
                        self._offsets[name] += len(rest)
                        rest = b""
        except OSError:
            return


def _read(line: bytes) -> Event | None:
    """Read an event; return None for anything but an object with a time and a name."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    numbers = (each for each in event.values() if isinstance(each, int | float))
    is_usable = not any(LARGEST_FIGURE <= abs(each) < math.inf for each in numbers)
    time = event.get("time")
    return event if is_usable and isinstance(time, int | float) and abs(time) < LARGEST else None


def _size(file: Path) -> int:
    """Return the size of a file in bytes; 0 when it does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def thin_out(events: list[Event]) -> list[Event]:
    """Join each pair of `steps` events that follow each other; all others are kept.

    The first event of a process is kept as well: only the time before that event belongs to the start of the process.
    """
    found: list[Event] = []
    has_trained = can_join = False
    for event in events:
        if can_join and _follows(found[-1], event):
            found[-1] = join(found[-1], event)
            can_join = False
            continue
        found.append(event)
        can_join = has_trained and event["event"] == "steps"
        has_trained = event["event"] == "steps" or (has_trained and event["event"] not in ("start", "restore"))
    return found


def join(first: Event, second: Event) -> Event:
    """Return one event for the steps of two; figures are means, weighted by steps, the speed by seconds."""
    steps = [number(each, "last_step") - number(each, "first_step") + 1 for each in (first, second)]
    seconds = [finite(each, "seconds") or 0.0 for each in (first, second)]
    return second | {
        "first_step": first["first_step"],
        "seconds": sum(seconds),
        "loss": _mean(first, second, "loss", steps),
        "accuracy": _mean(first, second, "accuracy", steps),
        "images_per_second": _mean(first, second, "images_per_second", seconds),
    }


def _follows(first: Event, second: Event) -> bool:
    """Return whether the second event's steps directly follow the first one's."""
    if second["event"] != "steps" or any(finite(first, name) is None for name in ("first_step", "last_step")):
        return False
    last = number(first, "last_step")
    return finite(second, "first_step") == last + 1 <= number(second, "last_step")


def _mean(first: Event, second: Event, field: str, weights: list[int] | list[float]) -> float | None:
    """Return the weighted mean of a figure, or the only one that there is."""
    values = [finite(each, field) for each in (first, second)]
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in pairs)
    if total <= 0:
        return pairs[-1][0] if pairs else None
    return sum(value * weight for value, weight in pairs) / total
