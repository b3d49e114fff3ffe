"""Follows the events that the replicas of a job write (docs/events.md)."""

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class EventFiles:
    """What has been written since this was made, by replica."""

    def __init__(self, base_output_directory: str, names: list[str]) -> None:
        is_local = base_output_directory != "" and "://" not in base_output_directory
        folder = Path(base_output_directory) / "checkpoints" / "events" if is_local else None
        self._files = {name: folder / f"{name}.jsonl" for name in names} if folder else {}
        # An earlier job may have left events: they are not this one's.
        self._offsets = {name: size(file) for name, file in self._files.items()}
        self._events: dict[str, list[Event]] = {name: [] for name in names}
        self._progress = dict.fromkeys(names, (0, 0))

    def poll(self) -> bool:
        """Reads what is new; whether some replica has trained on."""
        has_trained = False
        for name, file in self._files.items():
            if size(file) <= self._offsets[name]:
                continue
            for event in self._new(name, file):
                self._events[name].append(event)
                if event["event"] == "steps":
                    self._progress[name] = (number(event, "last_step"), number(event, "num_steps"))
                    has_trained = True
        return has_trained

    def of(self, name: str) -> list[Event]:
        """All events of a replica in the order of its file."""
        return self._events[name]

    def progress(self, name: str) -> tuple[int, int]:
        """The last step that a replica has trained, and the number of steps of the whole run; 0, 0 when unknown."""
        return self._progress[name]

    def _new(self, name: str, file: Path) -> list[Event]:
        """Whole lines that are not read yet; a line without its end may still be growing."""
        try:
            with file.open("rb") as stream:
                stream.seek(self._offsets[name])
                data = stream.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offsets[name] += len(whole)
        return [event for line in whole.splitlines() if (event := read(line)) is not None]


def read(line: bytes) -> Event | None:
    """An event; None for what is no object with a time and a name."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    is_event = isinstance(event, dict) and isinstance(event.get("time"), int | float) and "event" in event
    return event if is_event else None


def number(event: Event, field: str) -> int:
    """A whole number of an event, 0 when it is missing or something else."""
    value = event.get(field)
    return int(value) if isinstance(value, int | float) else 0


def size(file: Path) -> int:
    """Bytes of a file, 0 when it is not there."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
