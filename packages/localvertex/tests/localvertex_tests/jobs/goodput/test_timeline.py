"""How time was spent, computed from lifetimes and events that are written out here."""

import itertools
from typing import Any

import pytest

from localvertex.jobs.goodput.event_files import thin_out
from localvertex.jobs.goodput.goodput import add_up
from localvertex.jobs.goodput.timeline import SegmentKind, Span, Timeline, coarsen, timeline

Event = dict[str, Any]


def steps(time: float, first: int, last: int, seconds: float) -> Event:
    return {"time": time, "event": "steps", "first_step": first, "last_step": last, "seconds": seconds}


def event(name: str, time: float, seconds: Any = 0.0, **fields: Any) -> Event:
    return {"time": time, "event": name, "seconds": seconds, **fields}


def plain(line: Timeline) -> list[tuple[str, float, float]]:
    return [(str(each.kind), each.start, each.end) for each in line.segments]


def seconds(line: Timeline) -> dict[SegmentKind, float]:
    return {kind: sum(each.seconds for each in line.segments if each.kind is kind) for kind in SegmentKind}


def test_a_run_without_failures() -> None:
    events = [
        event("start", 3.0),
        steps(5.0, 1, 10, 2.0),
        event("save", 5.5, 0.5, step=10),
        steps(8.0, 11, 20, 2.0),
        event("evaluate", 9.0, 1.0),
    ]
    line = timeline([Span(start=0.0, end=10.0, exit_code=0)], events, 10.0)
    assert plain(line) == [
        ("starting", 0.0, 3.0),
        ("productive", 3.0, 5.0),
        ("saving", 5.0, 5.5),
        ("waiting", 5.5, 6.0),
        ("productive", 6.0, 8.0),
        ("evaluating", 8.0, 9.0),
        ("waiting", 9.0, 10.0),
    ]
    assert (line.num_steps, line.num_lost_steps) == (20, 0)


def test_steps_after_the_restored_checkpoint_are_lost() -> None:
    spans = [Span(start=0.0, end=10.0, exit_code=137), Span(start=11.0, end=20.0, exit_code=0)]
    events = [
        steps(4.0, 1, 10, 2.0),
        steps(8.0, 11, 20, 4.0),
        event("restore", 13.0, 1.0, step=15),
        steps(18.0, 16, 25, 5.0),
    ]
    line = timeline(spans, events, 20.0)
    assert plain(line) == [
        ("starting", 0.0, 2.0),
        ("productive", 2.0, 4.0),
        ("productive", 4.0, 6.0),
        ("lost", 6.0, 8.0),
        ("lost", 8.0, 10.0),
        ("waiting", 10.0, 11.0),
        ("starting", 11.0, 12.0),
        ("restoring", 12.0, 13.0),
        ("productive", 13.0, 18.0),
        ("waiting", 18.0, 20.0),
    ]
    assert (line.num_steps, line.num_lost_steps) == (25, 5)


def test_a_process_that_dies_before_its_first_step_only_starts_and_discards_nothing() -> None:
    spans = [Span(start=0, end=5, exit_code=9), Span(start=5, end=6, exit_code=1), Span(start=6, end=10, exit_code=0)]
    line = timeline(spans, [steps(4, 1, 10, 2), event("start", 5.5), steps(9, 11, 20, 2)], 10)
    assert (line.num_steps, line.num_lost_steps) == (20, 0)
    assert seconds(line)[SegmentKind.STARTING] == 2 + 1 + 1


def test_a_fallback_to_an_older_checkpoint_discards_steps_of_two_processes() -> None:
    spans = [Span(start=10 * n, end=10 * n + 10, exit_code=9 if n < 2 else 0) for n in range(3)]
    events = [
        steps(5, 1, 10, 5),
        event("restore", 11, step=10),
        steps(15, 11, 20, 4),
        event("restore", 21, step=5),
        steps(29, 6, 20, 8),
    ]
    line = timeline(spans, events, 30)
    assert (line.num_steps, line.num_lost_steps) == (20, 15)


def test_a_program_without_steps_is_running() -> None:
    line = timeline([Span(start=0, end=None)], [event("evaluate", 4, 1)], 6)
    assert plain(line) == [("running", 0, 3), ("evaluating", 3, 4), ("running", 4, 6)]


def test_what_a_running_process_does_since_its_last_event_is_not_lost() -> None:
    line = timeline([Span(start=0, end=None)], [steps(4, 1, 10, 4)], 6)
    assert plain(line) == [("productive", 0, 4), ("waiting", 4, 6)]


@pytest.mark.parametrize(
    "events",
    [
        [steps(5, 1, 1, 99), event("save", 4, 3), {"time": 6, "event": "steps"}, event("restore", 7, "x", step=None)],
        [steps(5, 20, 1, 1), event("start", 1)],
        [steps(900, 1, 2, 1), steps(1, 1, 2, -5)],
    ],
)
def test_events_that_make_no_sense_leave_a_timeline_without_gaps(events: list[Event]) -> None:
    line = timeline([Span(start=0, end=8, exit_code=1), Span(start=9, end=10, exit_code=0)], events, 10)
    edges = [(each.start, each.end) for each in line.segments]
    assert edges[0][0] == 0
    assert edges[-1][1] == 10
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(edges))


def test_few_segments_are_drawn_and_the_whole_time_is_covered() -> None:
    events = [steps(0.01 * n, n, n, 0.009) for n in range(1, 1001)]
    line = timeline([Span(start=0, end=11, exit_code=0)], events, 11)
    drawn = coarsen(line.segments, 0.05)
    assert len(line.segments) > 1000
    assert len(drawn) < 5
    assert (drawn[0].start, drawn[-1].end) == (0, 11)


def test_thinned_events_have_the_same_times_and_steps() -> None:
    events = [event("start", 1.0)]
    for number in range(1, 401):
        # Half of the time is between the steps, and each hundredth step is followed by a save.
        events.append(steps(2.0 + number, number, number, 0.5))
        events += [event("save", 2.25 + number, 0.25, step=number)] if number % 100 == 0 else []
    spans = [Span(start=0.0, end=500.0, exit_code=0)]
    whole, thin = timeline(spans, events, 500.0), timeline(spans, thin_out(thin_out(thin_out(events))), 500.0)
    assert len(thin_out(thin_out(thin_out(events)))) < 70
    assert seconds(thin) == pytest.approx(seconds(whole))
    assert (thin.num_steps, thin.num_lost_steps) == (400, 0)


def test_the_goodput_of_trials_is_weighted_by_their_time() -> None:
    """A user may have edited the sum in a record: what is missing counts as 0."""
    short = {"fraction": 1.0, "seconds": {"productive": 2.0}, "total_seconds": 2.0, "num_steps": 4, "num_failures": 1}
    long = {"fraction": 0.0, "seconds": {"productive": 0.0, "lost": 6.0}, "total_seconds": 6.0, "num_lost_steps": 3}
    unknown = {"fraction": None, "seconds": {"running": 8.0}, "total_seconds": 8.0}
    found = add_up([short, long])
    assert (found["fraction"], found["seconds"]) == (0.25, {"productive": 2.0, "lost": 6.0})
    assert (found["num_trials"], found["num_steps"], found["num_lost_steps"], found["num_failures"]) == (2, 4, 3, 1)
    assert add_up([found, unknown])["num_trials"] == 3
    assert add_up([found, unknown])["fraction"] == 0.125
    assert add_up([unknown])["fraction"] is None
    assert add_up([{"num_trials": 2}, {}])["num_trials"] == 3
    assert add_up([]) == {}
