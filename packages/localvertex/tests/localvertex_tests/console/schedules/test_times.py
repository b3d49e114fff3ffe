"""The next times of a cron: they ascend, follow the zone's clocks, and end where the schedule does."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from localvertex.api.rest.errors import ApiError
from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import Schedule
from localvertex.console.schedules.routes import times_of, times_of_schedule

NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


@settings(max_examples=150, deadline=None)
@given(st.text("0123456789*/-,#LW? MONJAN@", max_size=30))
def test_any_text_is_refused_or_has_times(text: str) -> None:
    try:
        cron = Cron.parse(text)
        times = times_of(cron, NOW, 5)
    except ApiError:
        return
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
