"""Joins the events of neighbouring steps, so that a training of any length takes little memory and time to show."""

from localvertex.jobs.goodput.progress import Event, finite, number

MAX_EVENTS = 2000
"""Beyond these, neighbouring `steps` events are joined in pairs."""


def thin_out(events: list[Event]) -> list[Event]:
    """Join each pair of `steps` events that follow each other; all others are kept.

    The first one of a process is kept, too: the time before it is the start of the process, that between others is not.
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
    """Return the event of the steps of both; figures are means, weighted by steps, the speed by seconds."""
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
