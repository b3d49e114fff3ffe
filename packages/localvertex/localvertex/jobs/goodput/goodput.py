"""Goodput: the share of a job's time spent on steps that count, and how the rest was spent."""

from collections.abc import Mapping, Sequence
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.goodput.timeline import SegmentKind, Span, Timeline, coarsen, timeline

_NUM_DRAWN = 1000
"""Segments shorter than the job's time divided by this are merged with their neighbours."""


def goodput(spans: Mapping[str, Sequence[Span]], events: EventFiles, *, num_failures: int, end: float) -> JsonObject:
    """Compute the goodput of a job until `end`, as in run.json (docs/faults.md). Times count from its start.

    The seconds are the primary replica's, because synchronous training stops when it does.

    Args:
        spans: The processes of all replicas, the primary first; each has been started.
        events: The events that they wrote.
        num_failures: Restarts of replicas or of the job.
        end: The end of the job, or the present, in seconds since the epoch.
    """
    primary = next(iter(spans))
    start = spans[primary][0].start
    total = max(end - start, 1e-3)
    timelines = {name: timeline(own, events.of(name), end) for name, own in spans.items()}
    own = timelines[primary]
    seconds = {kind: sum(each.seconds for each in own.segments if each.kind is kind) for kind in SegmentKind}
    # When the clock was set back, there may be no time in which the steps were trained.
    has_steps = own.num_steps + own.num_lost_steps > 0 and end > start
    return {
        "fraction": round(seconds[SegmentKind.PRODUCTIVE] / total, 4) if has_steps else None,
        "seconds": {
            str(kind): round(value, 3) for kind, value in seconds.items() if value or kind is not SegmentKind.RUNNING
        },
        "total_seconds": round(total, 3),
        "num_steps": own.num_steps,
        "num_lost_steps": own.num_lost_steps,
        "num_failures": num_failures,
        "timeline": {name: _drawn_segments(each, start, total) for name, each in timelines.items()},
    }


def add_up(parts: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Add up the goodput of the trials of a tuning job, or of sums of trials; empty without a trial.

    The seconds are a sum over all trials, which have no common timeline.
    """
    if not parts:
        return {}
    names = ("total_seconds", "num_steps", "num_lost_steps", "num_failures")
    # A user may have edited the sum in a record.
    sums = {name: round(sum(each.get(name, 0) for each in parts), 3) for name in names}
    every = [each.get("seconds", {}) for each in parts]
    seconds = {str(kind): round(sum(each.get(kind, 0.0) for each in every), 3) for kind in SegmentKind}
    has_steps = any(each.get("fraction") is not None for each in parts) and sums["total_seconds"] > 0
    return {
        "num_trials": sum(each.get("num_trials", 1) for each in parts),
        "fraction": round(seconds[SegmentKind.PRODUCTIVE] / sums["total_seconds"], 4) if has_steps else None,
        "seconds": {kind: value for kind, value in seconds.items() if any(kind in each for each in every)},
        **sums,
        "timeline": {},
    }


def _drawn_segments(line: Timeline, start: float, total: float) -> list[list[Any]]:
    """Return kind, start and end of each segment that is long enough to draw."""
    return [
        [str(each.kind), round(each.start - start, 3), round(each.end - start, 3)]
        for each in coarsen(line.segments, total / _NUM_DRAWN)
    ]
