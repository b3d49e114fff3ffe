"""Two hours of schedules in half a minute, with kills, full disks and damaged records."""

from pathlib import Path

import pytest
from localvertex_tests.api.day.long_day import Day, Plan


@pytest.mark.slow
def test_no_run_of_a_day_is_lost_or_doubled(tmp_path: Path) -> None:
    plan = Plan(minutes=0.4, hours=2, num_schedules=4, num_troubles=6, seed=13, work_dir=tmp_path / "runs")
    with Day(plan) as day:
        day.live()
        found = day.end()
    assert found["wrong"] == {}
    assert found["runs"] + found["skipped by kills"] == plan.num_schedules * plan.num_instants
    assert {"kill", "full disk", "damage"} == set(found["troubles"])
    # Nothing runs any more: those of a new server, and some room.
    assert found["files at the end"] <= 16
