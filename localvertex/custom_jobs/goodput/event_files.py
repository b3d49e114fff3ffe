"""Follows the event logs that the replicas of a job write (docs/events.md)."""

import json
from pathlib import Path

from localvertex.custom_jobs.goodput.progress import Event, Progress


class EventFiles:
    """The events that each replica has written since this object was created."""

    def __init__(self, base_output_directory: str, names: list[str]) -> None:
        is_local = base_output_directory != "" and "://" not in base_output_directory
        folder = Path(base_output_directory) / "checkpoints" / "events" if is_local else None
        self._files = {name: folder / f"{name}.jsonl" for name in names} if folder else {}
        # An earlier job may have left events, which do not belong to this job.
        self._offsets = {name: _size(file) for name, file in self._files.items()}
        self._events: dict[str, list[Event]] = {name: [] for name in names}
        self._progress = dict.fromkeys(names, Progress())
        self._first_steps: dict[str, Event] = {}

    def poll(self) -> bool:
        """Read new events; return whether any replica has trained further."""
        has_trained = False
        for name, file in self._files.items():
            if _size(file) <= self._offsets[name]:
                continue
            for event in self._new(name, file):
                self._events[name].append(event)
                if event["event"] == "start":
                    self._first_steps.pop(name, None)
                if event["event"] == "steps":
                    self._progress[name] = Progress.after(event, self._first_steps.setdefault(name, event))
                    has_trained = True
        return has_trained

    def of(self, name: str) -> list[Event]:
        """Return all events of a replica, in the order of its file."""
        return self._events[name]

    def progress(self, name: str) -> Progress:
        """Return how far a replica's training is."""
        return self._progress[name]

    def _new(self, name: str, file: Path) -> list[Event]:
        """Read the complete lines that are new; a line without its end may still be growing."""
        try:
            with file.open("rb") as stream:
                stream.seek(self._offsets[name])
                data = stream.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offsets[name] += len(whole)
        return [event for line in whole.splitlines() if (event := _read(line)) is not None]


def _read(line: bytes) -> Event | None:
    """Read an event; return None for anything but an object with a time and a name."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    is_event = isinstance(event, dict) and isinstance(event.get("time"), int | float) and "event" in event
    return event if is_event else None


def _size(file: Path) -> int:
    """Return the size of a file in bytes; 0 when it does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
