"""Observers of a run. Each takes the events of docs/events.md."""

from collections.abc import Callable, Sequence
from typing import Any

Observer = Callable[..., None]
"""Called as log_event(event, **fields); docs/events.md lists the events and their fields."""


def all_of(observers: Sequence[Observer]) -> Observer:
    """Return one observer that passes each event to several."""

    def log_event(event: str, **fields: Any) -> None:
        for observer in observers:
            observer(event, **fields)

    return log_event
