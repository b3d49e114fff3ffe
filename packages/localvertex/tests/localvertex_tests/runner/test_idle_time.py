"""The duration of a run is the time in which it was running: a night between failure and retry does not count."""

import json
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.support.journal import Listener

import localvertex
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.record import WatchedRuns
from localvertex.runner.engine import Options
from localvertex.store import journal, record
from localvertex.store.task import State, Task
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Compile

NIGHT = 12 * 3600.0


@dsl.component(**STEP)
def need(there: str) -> None:
    open(there).close()


@dsl.pipeline(name="needing")
def needing(there: str) -> None:
    need(there=there)


def a_night_ago(run_dir: Path) -> None:
    """Let everything in a record have been a night ago."""
    path = run_dir / record.FILE
    times = re.compile(r'"20\d\d-[^"]*Z"')
    path.write_text(times.sub(lambda found: f'"{earlier(found[0][1:-1])}"', path.read_text()))


def earlier(text: str) -> str:
    return (datetime.fromisoformat(text) - timedelta(seconds=NIGHT)).isoformat().replace("+00:00", "Z")


def resumed(compiled: Compile, work_dir: Path, there: Path) -> dict[str, Any]:
    """Fail, wait for a night, and succeed."""
    options = Options(work_dir=work_dir, run_id="slept")
    first = localvertex.run(compiled(needing), parameters={"there": str(there)}, options=options)
    assert (first["state"], first["idle_seconds"]) == ("FAILED", 0.0)
    a_night_ago(work_dir / "slept")
    there.touch()
    return localvertex.resume("slept", options=Options(work_dir=work_dir))


def test_a_night_between_a_failure_and_its_retry_is_not_part_of_the_duration(compiled: Compile, tmp_path: Path) -> None:
    work_dir = tmp_path / "runs"
    content = resumed(compiled, work_dir, tmp_path / "there")
    assert content["state"] == "SUCCEEDED"
    assert content["idle_seconds"] > NIGHT - 1
    assert 0 < content["seconds"] < NIGHT
    between = record.seconds_of(content["end_time"]) - record.seconds_of(content["start_time"])  # type: ignore[operator]
    assert abs(between - content["seconds"] - content["idle_seconds"]) < 0.01
    store = Store(work_dir)
    (row,) = RunList(store).page(LocalCall())["runs"]
    assert {
        name: row[name] for name in ("seconds", "idle_seconds", "start_time", "end_time")
    }.items() <= content.items()
    page = WatchedRuns(store).answer(work_dir / "slept")
    assert (page["seconds"], page["idle_seconds"]) == (content["seconds"], content["idle_seconds"])
    assert report_data(work_dir / "slept" / record.PAGE)["run"]["seconds"] == content["seconds"]


def test_a_clock_that_is_set_back_makes_no_duration_zero(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.time

    def set_back(task: Task) -> None:
        if task.is_step and task.state is State.RUNNING:
            monkeypatch.setattr(time, "time", lambda: clock() - 3600)

    (tmp_path / "there").touch()
    content = localvertex.run(
        compiled(needing),
        parameters={"there": str(tmp_path / "there")},
        options=Options(work_dir=tmp_path / "runs"),
        display=Listener(set_back),
    )
    assert content["state"] == "SUCCEEDED"
    assert time.time() < clock() - 3000
    for each in (content, *content["tasks"]):
        assert each["seconds"] > 0
        assert each["start_time"] < each["end_time"]


def test_a_journal_counts_as_the_end_does(compiled: Compile, tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "slept"
    content = resumed(compiled, run_dir.parent, tmp_path / "there")
    # As if the resume had been killed: what is known of it is in its journal.
    running = content | {"state": "RUNNING", "end_time": None}
    log = journal.Journal(run_dir, 7)
    record.write(run_dir, running, position=log.position)
    log.append([{"time": content["end_time"], "run": {"state": "RUNNING"}}])
    log.close()
    found = record.read(run_dir)
    assert found["state"] == "FAILED"
    assert abs(found["seconds"] - content["seconds"]) < 0.01
    assert json.loads((run_dir / record.FILE).read_text())["idle_seconds"] == content["idle_seconds"]
