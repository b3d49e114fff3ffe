"""When schedules fire: time zones, and the days on which clocks change."""

from datetime import datetime

import pytest

from localvertex.api.rest.errors import ApiError
from localvertex.api.schedules.cron import Cron


def instants(text: str, start: str, count: int) -> list[str]:
    """Return the first instants after a moment."""
    moment, found = datetime.fromisoformat(start), []
    for _ in range(count):
        moment = Cron.parse(text).after(moment)
        found.append(moment.isoformat())
    return found


def test_the_default_zone_is_utc() -> None:
    assert instants("0 3 * * 1", "2026-11-21T00:00:00+00:00", 2) == [
        "2026-11-23T03:00:00+00:00",
        "2026-11-30T03:00:00+00:00",
    ]


@pytest.mark.parametrize("prefix", ["TZ=", "CRON_TZ="])
def test_a_zone_has_two_spellings(prefix: str) -> None:
    assert instants(f"{prefix}Asia/Tokyo 30 9 * * *", "2026-11-21T00:30:00+00:00", 1) == ["2026-11-22T00:30:00+00:00"]


def test_a_daily_run_keeps_its_time_of_day_when_clocks_change() -> None:
    assert instants("TZ=Europe/Berlin 0 5 * * *", "2026-03-28T00:00:00+00:00", 2) == [
        "2026-03-28T04:00:00+00:00",
        "2026-03-29T03:00:00+00:00",
    ]


def test_a_run_in_the_skipped_hour_fires_once_after_it() -> None:
    # 02:30 does not exist on 29 March 2026 in Berlin.
    assert instants("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T02:00:00+00:00", 2) == [
        "2026-03-29T01:00:00+00:00",
        "2026-03-30T00:30:00+00:00",
    ]


def test_a_run_in_the_repeated_hour_fires_once() -> None:
    # 02:30 comes twice on 25 October 2026 in Berlin: at 00:30 and at 01:30 UTC.
    assert instants("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00+00:00", 2) == [
        "2026-10-25T00:30:00+00:00",
        "2026-10-26T01:30:00+00:00",
    ]


def test_an_hourly_run_follows_real_hours() -> None:
    assert instants("TZ=Europe/Berlin 0 * * * *", "2026-10-24T23:30:00+00:00", 4) == [
        "2026-10-25T00:00:00+00:00",
        "2026-10-25T01:00:00+00:00",
        "2026-10-25T02:00:00+00:00",
        "2026-10-25T03:00:00+00:00",
    ]


@pytest.mark.parametrize(
    "text", ["", "* * * *", "* * * * * *", "61 * * * *", "TZ=Nowhere/At_All * * * * *", "TZ= * * * * *"]
)
def test_a_malformed_cron_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="cron"):
        Cron.parse(text)
