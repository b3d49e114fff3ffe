"""The calls that replace, end, delete and leave alone schedules, planned without a service."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.schedules.file import Schedule
from pipelines.schedules.plan import Change, plan, prune
from pipelines.vertex import Location

LOCATION = Location(project="my-project", region="us-central1")
NOW = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)


def schedule(**changes: Any) -> Schedule:
    """Return a schedule of the file."""
    usual = {"name": "weekly", "cron": "TZ=UTC 0 3 * * 1", "location": LOCATION, "job": {"displayName": "weekly"}}
    return Schedule(**{**usual, **changes})


def existing(change: Change, number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return the schedule that the service has after a `create`."""
    times = {"createTime": "2026-01-01T00:00:00Z", "startTime": "2026-01-01T00:00:00Z"}
    name = f"{LOCATION.parent}/schedules/{number}"
    running = {"state": "ACTIVE", "nextRunTime": "2026-01-12T03:00:00Z", "name": name}
    return {**times, **running, **change.body, **fields}


def verbs(changes: list[Change]) -> list[str]:
    return [change.verb for change in changes]


def test_a_new_schedule_starts_at_once_and_then_matches() -> None:
    (created,) = plan([schedule()], [], NOW)
    assert (created.verb, created.reason) == ("create", "new")
    assert "startTime" not in created.body
    assert plan([schedule()], [existing(created)], NOW) == []


@pytest.mark.parametrize("second", [0, 1, 29, 30, 31, 59])
def test_a_replacement_is_at_a_moment_that_no_cron_matches(second: int) -> None:
    now = NOW.replace(second=second)
    (created,) = plan([schedule()], [], now)
    replacement, retired = plan([schedule(job={"displayName": "changed"})], [existing(created)], now)
    start = datetime.fromisoformat(replacement.body["startTime"])
    assert start.second == 30
    assert timedelta(seconds=30) <= start - now < timedelta(seconds=90)
    # The next run of the old one is after the handover.
    assert (replacement.verb, retired.verb) == ("create", "delete")


def test_an_old_schedule_with_a_run_before_the_handover_ends_there() -> None:
    (created,) = plan([schedule()], [], NOW)
    old = existing(created, nextRunTime="2026-01-05T12:00:10Z")
    replacement, retired = plan([schedule(job={"displayName": "changed"})], [old], NOW)
    assert (retired.verb, retired.mask) == ("end", ("endTime",))
    assert retired.body["endTime"] == replacement.body["startTime"]
    # Interrupted before the second call, the next plan has only that one.
    new = existing(replacement, 2, createTime="2026-01-05T12:00:01Z")
    assert verbs(plan([schedule(job={"displayName": "changed"})], [old, new], NOW)) == ["end"]


def test_a_paused_schedule_is_created_with_a_later_start_so_that_no_run_comes_before_the_pause() -> None:
    created, paused = plan([schedule(enabled=False)], [], NOW)
    assert (created.verb, paused.verb) == ("create", "pause")
    assert datetime.fromisoformat(created.body["startTime"]) > NOW
    assert paused.resource == ""


def test_an_unmanaged_schedule_is_left_alone() -> None:
    unmanaged = {"name": f"{LOCATION.parent}/schedules/7", "displayName": "weekly", "state": "ACTIVE"}
    assert verbs(plan([schedule()], [unmanaged], NOW)) == ["create"]
    assert prune([], [unmanaged], [LOCATION]) == []


def test_prune_deletes_what_is_not_in_the_file_in_its_region_only() -> None:
    (created,) = plan([schedule()], [], NOW)
    managed = existing(created)
    assert verbs(prune([], [managed], [LOCATION])) == ["delete"]
    assert prune([schedule()], [managed], [LOCATION]) == []
    assert prune([], [managed], [Location(project="my-project", region="europe-west4")]) == []
