"""Goodput: the share of a job's time that went into steps which count, and what the rest went into."""

import math
from statistics import fmean
from typing import Any

from localvertex.custom_jobs.goodput.event_files import Event, EventFiles
from localvertex.custom_jobs.goodput.timeline import Kind, Timeline, coarsened, timeline
from localvertex.custom_jobs.replica_process import ReplicaProcess

NUM_DRAWN = 1000
"""A segment shorter than this part of the job is not drawn by itself."""

Mark = tuple[float, str]
"""Something that happened: seconds since the epoch, and what."""


def goodput(
    replicas: list[ReplicaProcess], events: EventFiles, *, num_failures: int, marks: list[Mark], end: float
) -> dict[str, Any]:
    """The goodput of a job, as in run.json (docs/localvertex.md). Times are seconds from the start of the job.

    The seconds are those of the primary replica: when it stands still, synchronous training does.

    Args:
        replicas: All, the primary first; each has been started.
        events: What they wrote.
        num_failures: Restarts of replicas or of the job.
        marks: What happened.
        end: When the job ended, in seconds since the epoch.
    """
    primary = replicas[0]
    start = primary.spans[0].start
    total = max(end - start, 1e-3)
    timelines = {each.name: timeline(each.spans, events.of(each.name), end) for each in replicas}
    own = timelines[primary.name]
    seconds = {kind: sum(each.seconds for each in own.segments if each.kind is kind) for kind in Kind}
    has_steps = own.num_steps + own.num_lost_steps > 0
    return {
        "fraction": round(seconds[Kind.PRODUCTIVE] / total, 4) if has_steps else None,
        "seconds": {str(kind): round(value, 3) for kind, value in seconds.items() if value or kind is not Kind.RUNNING},
        "total_seconds": round(total, 3),
        "num_steps": own.num_steps,
        "num_lost_steps": own.num_lost_steps,
        "num_failures": num_failures,
        **checkpointing(events.of(primary.name), num_failures=num_failures, total_seconds=total),
        "timeline": {name: drawn(each, start, total) for name, each in timelines.items()},
        "marks": [[round(time - start, 3), text] for time, text in marks],
    }


def checkpointing(events: list[Event], *, num_failures: int, total_seconds: float) -> dict[str, float | None]:
    """How often the job saved, and how often it best would have for the failures it saw.

    Young's first-order optimum, which Daly refined: sqrt(2 x cost of a save x mean time between failures). None
    stands for what cannot be known: without a failure there is no rate, without a save no cost.
    """
    saves = [event for event in events if event["event"] == "save"]
    costs = [float(event["seconds"]) for event in saves if isinstance(event.get("seconds"), int | float)]
    between_failures = total_seconds / num_failures if num_failures else None
    cost = fmean(costs) if costs else None
    best = math.sqrt(2 * cost * between_failures) if cost and between_failures else None
    span = saves[-1]["time"] - saves[0]["time"] if saves else 0.0
    return {
        "mean_seconds_between_failures": rounded(between_failures),
        "mean_save_seconds": rounded(cost),
        "mean_seconds_between_saves": rounded(span / (len(saves) - 1) if len(saves) > 1 else None),
        "best_seconds_between_saves": rounded(best),
    }


def drawn(line: Timeline, start: float, total: float) -> list[list[Any]]:
    """Kind, start and end of what is worth drawing."""
    return [
        [str(each.kind), round(each.start - start, 3), round(each.end - start, 3)]
        for each in coarsened(line.segments, total / NUM_DRAWN)
    ]


def rounded(value: float | None) -> float | None:
    """To a tenth of a millisecond: saves of small models take less than a millisecond."""
    return None if value is None else round(value, 4)
