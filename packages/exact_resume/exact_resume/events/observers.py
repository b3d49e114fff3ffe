"""Observers of a run. Each takes the events of docs/events.md."""

from collections.abc import Callable

Observer = Callable[..., None]
"""Called as log_event(event, **fields); docs/events.md lists the events and their fields."""
