"""The timeline of a replica, from the lifetimes of its processes and their event logs (docs/events.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from localvertex.jobs.goodput.progress import Event, finite, number


@dataclass(kw_only=True)
class Span:
    """The lifetime of one process of a replica, in seconds since the epoch."""

    start: float
    end: float | None = None
    exit_code: int | None = None


class SegmentKind(StrEnum):
    """How a segment of time was spent."""

    PRODUCTIVE = "productive"
    """Steps that count."""
    LOST = "lost"
    """Steps that were trained again later, and the training that a kill interrupted."""
    SAVING = "saving"
    RESTORING = "restoring"
    STARTING = "starting"
    """Time from the start of a process to its first step: imports, building the model, tracing, connecting to peers."""
    EVALUATING = "evaluating"
    WAITING = "waiting"
    """No process, or between two events."""
    RUNNING = "running"
    """A program that trains no steps, or logs none."""


_KIND_OF_EVENT = {"save": SegmentKind.SAVING, "restore": SegmentKind.RESTORING, "evaluate": SegmentKind.EVALUATING}


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment of time, in seconds since the epoch."""

    kind: SegmentKind
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """All of a replica's time, without gaps, and its steps."""

    segments: tuple[Segment, ...]
    num_steps: int
    """Steps that count."""
    num_lost_steps: int


def timeline(spans: Sequence[Span], events: list[Event], end: float) -> Timeline:
    """Build the timeline of a replica from its first start to `end`.

    Spans are read backwards: a process that resumes from step r discards what earlier ones trained beyond r.
    """
    trains = any(event["event"] == "steps" for event in events)
    segments: list[Segment] = []
    num_steps = num_lost_steps = 0
    limit = following_start = math.inf
    for span in reversed(spans):
        own = [event for event in events if span.start <= event["time"] < following_start]
        following_start = span.start
        part = _ProcessPart(span, own, limit=limit, end=span.end or end, trains=trains)
        segments = part.segments() + segments
        num_steps, num_lost_steps = num_steps + part.num_steps, num_lost_steps + part.num_lost_steps
        limit = min(limit, _resume_step(own))
    return Timeline(segments=_without_gaps(segments, end), num_steps=num_steps, num_lost_steps=num_lost_steps)


def _resume_step(events: list[Event]) -> float:
    """Return the step from which a process resumed; infinity when it never reached a step."""
    for event in events:
        if event["event"] == "restore":
            return number(event, "step")
        if event["event"] == "steps":
            return number(event, "first_step") - 1
    return math.inf


class _ProcessPart:
    """The part of a timeline that belongs to one process."""

    def __init__(self, span: Span, events: list[Event], *, limit: float, end: float, trains: bool) -> None:
        self._span, self._events, self._limit, self._end, self._trains = span, events, limit, end, trains
        self.num_steps = self.num_lost_steps = 0

    def segments(self) -> list[Segment]:
        """Build its segments, in order and without gaps."""
        now, segments = self._span.start, []
        between = SegmentKind.STARTING if self._trains else SegmentKind.RUNNING
        for event in self._events:
            seconds = finite(event, "seconds")
            if event["event"] not in ("steps", *_KIND_OF_EVENT) or seconds is None:
                continue
            event_end = min(max(now, event["time"]), self._end)
            start = min(max(now, event["time"] - seconds), event_end)
            segments.append(Segment(kind=between, start=now, end=start))
            if event["event"] == "steps":
                segments += self._steps(event, start, event_end)
                between = SegmentKind.WAITING
            else:
                segments.append(Segment(kind=_KIND_OF_EVENT[event["event"]], start=start, end=event_end))
            now = event_end
        # Of a process that still runs, it is not known yet.
        was_training = between is SegmentKind.WAITING and self._span.end is not None and self._span.exit_code != 0
        last = SegmentKind.LOST if was_training else between
        return [each for each in [*segments, Segment(kind=last, start=now, end=self._end)] if each.seconds > 0]

    def _steps(self, event: Event, start: float, end: float) -> list[Segment]:
        """Split a call of several steps: those up to the limit count, the others are lost."""
        first, last = number(event, "first_step"), number(event, "last_step")
        num_all = max(1, last - first + 1)
        num_kept = int(max(0, min(num_all, self._limit - first + 1)))
        self.num_steps, self.num_lost_steps = self.num_steps + num_kept, self.num_lost_steps + num_all - num_kept
        turn = start + (end - start) * num_kept / num_all
        return [
            Segment(kind=SegmentKind.PRODUCTIVE, start=start, end=turn),
            Segment(kind=SegmentKind.LOST, start=turn, end=end),
        ]


def _without_gaps(segments: list[Segment], end: float) -> tuple[Segment, ...]:
    """Fill the gaps between segments, and up to the end, with waiting."""
    if not segments:
        return ()
    last = Segment(kind=SegmentKind.WAITING, start=end, end=end)
    filled = []
    for segment, following in pairwise([*segments, last]):
        filled.append(segment)
        if following.start > segment.end:
            filled.append(Segment(kind=SegmentKind.WAITING, start=segment.end, end=following.start))
    return tuple(filled)


def coarsen(segments: tuple[Segment, ...], resolution_seconds: float) -> list[Segment]:
    """Merge each segment that is shorter than the resolution into the one before it."""
    drawn: list[Segment] = []
    for segment in segments:
        if drawn and (segment.kind is drawn[-1].kind or segment.seconds < resolution_seconds):
            drawn[-1] = Segment(kind=drawn[-1].kind, start=drawn[-1].start, end=segment.end)
        else:
            drawn.append(segment)
    return drawn
