"""A cron as a sentence: it agrees with the times at which it fires, and the times end where the schedule does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from localvertex.api.rest.errors import ApiError
from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import Schedule
from localvertex.console.schedules.sentence import sentence, times_of, times_of_schedule

NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * 1", "At 03:00, only on Monday"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes, between 09:00 and 17:59, Monday through Friday"),
        ("30 14 * * *", "At 14:30"),
        ("0 0 1 * 1", "At 00:00, on day 1 of the month, on Monday (either day is enough)"),
        ("0 0 */2 * 1", "At 00:00, every 2 days, on Monday (both days must match)"),
        ("0 0 L * *", "At 00:00, on the last day of the month"),
        ("0 0 * * 5L", "At 00:00, on the last Friday of the month"),
    ],
)
def test_a_cron_is_a_sentence(cron: str, expected: str) -> None:
    assert sentence(Cron.parse(f"TZ=Europe/Berlin {cron}")) == expected


def field(least: int, most: int) -> st.SearchStrategy[str]:
    """A field of a cron expression."""
    number = st.integers(least, most)
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(1, most).map(lambda step: f"*/{step}")
    return st.one_of(st.just("*"), number.map(str), ranges, steps)


@settings(max_examples=80, deadline=None)
@given(st.tuples(field(0, 59), field(0, 23), field(1, 28), st.just("*"), field(0, 6)))
def test_the_rule_for_two_days_agrees_with_the_times(fields: tuple[str, ...]) -> None:
    minute, hour, day, month, weekday = fields
    cron = Cron.parse(" ".join(fields))
    text = sentence(cron)
    assert text
    assume(day != "*" and weekday != "*")

    def fires(expression: str, moment: datetime) -> bool:
        return Cron.parse(expression).after(moment - timedelta(seconds=1)) == moment

    for each in times_of(cron, NOW, 3):
        moment = datetime.fromisoformat(each)
        found = [
            fires(f"{minute} {hour} {day} {month} *", moment),
            fires(f"{minute} {hour} * {month} {weekday}", moment),
        ]
        assert all(found) if "both days must match" in text else any(found)
    if "either" in text:
        for expression in (f"{minute} {hour} {day} {month} *", f"{minute} {hour} * {month} {weekday}"):
            assert fires(" ".join(fields), Cron.parse(expression).after(NOW))


@settings(max_examples=150, deadline=None)
@given(st.text("0123456789*/-,#LW? MONJAN@", max_size=30))
def test_any_text_is_refused_or_has_a_sentence_and_times(text: str) -> None:
    try:
        cron = Cron.parse(text)
        times = times_of(cron, NOW, 5)
    except ApiError:
        return
    assert isinstance(sentence(cron), str)
    assert times == sorted(set(times))


def test_the_times_are_those_of_clocks_in_the_zone_also_when_they_change() -> None:
    times = times_of(Cron.parse("TZ=Europe/Berlin 30 2 * * *"), datetime(2026, 10, 24, tzinfo=UTC), 3)
    assert times == ["2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]


def schedule(**fields: Any) -> Schedule:
    """Return a daily schedule."""
    content = {"cron": "0 12 * * *", "state": "ACTIVE", "startedRunCount": "0", "startTime": "2026-01-01T00:00:00Z"}
    return Schedule(content | {"nextRunTime": "2026-11-23T12:00:00Z"} | fields)


@pytest.mark.parametrize(
    ("fields", "days"),
    [
        ({}, [23, 24, 25, 26, 27]),
        ({"maxRunCount": "7", "startedRunCount": "5"}, [23, 24]),
        ({"maxRunCount": "7", "startedRunCount": "7"}, []),
        ({"endTime": "2026-11-25T12:00:00Z"}, [23, 24, 25]),
        ({"state": "PAUSED", "nextRunTime": "2026-11-02T12:00:00Z"}, [23, 24, 25, 26, 27]),
        ({"state": "PAUSED", "startTime": "2026-11-25T12:00:00Z"}, [25, 26, 27, 28, 29]),
        ({"state": "COMPLETED"}, []),
        ({"state": "STATE_UNSPECIFIED"}, []),
    ],
)
def test_the_times_of_a_schedule_end_where_it_does(fields: dict[str, Any], days: list[int]) -> None:
    times = times_of_schedule(schedule(**fields), NOW, 5)
    assert [datetime.fromisoformat(each).day for each in times] == days
