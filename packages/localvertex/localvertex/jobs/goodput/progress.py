"""How far a replica's training is, from its event log (docs/events.md)."""

import math
from dataclasses import dataclass

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.shape import LARGEST

Event = JsonObject

LARGEST_FIGURE = 1e100
"""Limit of finite figures. Their sums and products are finite; an event with a larger figure is not read."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The training of one replica at one moment; what its program does not log is 0 or None."""

    step: int = 0
    """The last trained step."""
    num_steps: int = 0
    """Steps of the whole run."""
    loss: float | None = None
    accuracy: float | None = None
    images_per_second: float | None = None
    seconds_left: float | None = None
    """Time until the last step, at the mean pace since the process logged its first steps, which take far longer."""

    @classmethod
    def after(cls, event: Event, first: Event) -> "Progress":
        """Return the progress after a `steps` event; `first` is the first one of the same process."""
        step, num_steps = number(event, "last_step"), number(event, "num_steps")
        return cls(
            step=step,
            num_steps=num_steps,
            loss=finite(event, "loss"),
            accuracy=finite(event, "accuracy"),
            images_per_second=finite(event, "images_per_second"),
            seconds_left=_seconds_left(event, first, num_left=num_steps - step),
        )


def _seconds_left(event: Event, first: Event, *, num_left: int) -> float | None:
    """Return the seconds for the steps that are left; None when they cannot be known."""
    num_since = number(event, "last_step") - number(first, "last_step")
    seconds: float = event["time"] - first["time"]
    if num_left < 0 or num_since <= 0 or seconds <= 0:
        return None
    return round(num_left * seconds / num_since, 1)


def number(event: Event, field: str) -> int:
    """Return a whole number of an event; 0 when it is missing or not a number."""
    value = event.get(field)
    return int(value) if isinstance(value, int | float) and abs(value) < LARGEST else 0


def finite(event: Event, field: str) -> float | None:
    """Return a number of an event; None when it is missing, not a number, or has no place in JSON."""
    value = event.get(field)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
