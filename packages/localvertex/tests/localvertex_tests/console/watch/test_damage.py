"""A record that was edited or damaged: one sentence on every route and in the stream, never a defect."""

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.events.changes import RunChanges
from localvertex.console.events.job_changes import JobChanges
from localvertex.console.jobs.routes import JobRoutes
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.record import WatchedRuns
from localvertex.console.runs.routes import RunRoutes
from localvertex.runner.engine import Options
from localvertex.show.view import shape
from localvertex.show.view.live import LiveJob
from localvertex.store import record, run_folder
from localvertex.store.journal import Journal

NAME = "run-00001"

JOB = {
    "state": "JOB_STATE_SUCCEEDED",
    "replicas": [
        {
            "name": "workerpool0-0",
            "is_running": False,
            "num_starts": 1,
            "exit_code": 0,
            "spans": [{"start": 1.0, "end": 2.0, "exit_code": 0}],
            "event_log": {"path": "/nowhere", "offset": 0},
        }
    ],
    "events": [{"time": 2.0, "kind": "state", "text": "", "replica": "", "action": "", "phase": "JOB_STATE_SUCCEEDED"}],
    "goodput": None,
}

DAMAGES: list[tuple[tuple[Any, ...], Any]] = [
    (("custom_job",), [1]),
    (("custom_job", "replicas"), {}),
    (("custom_job", "replicas", 0, "name"), None),
    (("custom_job", "replicas", 0, "spans", 0), ["x"]),
    (("custom_job", "replicas", 0, "spans", 0, "start"), float("nan")),
    (("custom_job", "replicas", 0, "event_log"), -1),
    (("custom_job", "replicas", 0, "event_log", "path"), [["a"]]),
    (("custom_job", "events"), {"a": 1}),
    (("custom_job", "events", 0, "time"), [None]),
    (("outputs",), True),
    (("outputs", "artifacts"), {"a": [{}]}),
    (("inputs", "parameters"), None),
    (("seconds",), 10**400),
    (("seconds",), True),
    (("state",), "ODD"),
    (("path",), None),
]


def write(work_dir: Path, place: tuple[Any, ...] = (), value: Any = None, name: str = NAME, **fields: Any) -> Path:
    """Write a run whose step has a custom job, with another value at a place of the step's entry."""
    task = json.loads(json.dumps(run_records.TASK | {"custom_job": JOB}))
    part = task
    for each in place[:-1]:
        part = part[each]
    if place:
        part[place[-1]] = value
    content = run_records.run_record(work_dir, name, "2026-01-01T00:01:00.000Z", **{"tasks": [task], **fields})
    run_records.write(work_dir / name / "run.json", content)
    return work_dir / name


def calls() -> Iterator[tuple[type, str, dict[str, str]]]:
    """Return the methods of the console that read a record, with the query that reaches the damaged entry."""
    step = {"task": "train"}
    yield RunRoutes, "run", {}
    yield RunRoutes, "log", step
    yield RunRoutes, "artifact", step | {"name": "a"}
    yield JobRoutes, "of_run", step


@pytest.mark.parametrize(("place", "value"), DAMAGES)
def test_a_damaged_entry_is_a_sentence_on_every_route(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    run_dir = write(tmp_path, place, value)
    write(tmp_path, name="other")
    store = Store(tmp_path)
    records = WatchedRuns(store)
    ((name, event),) = RunChanges(records, run_dir)()
    assert (name, event["text"].count("\n")) == ("problem", 0)
    assert f"the record of {NAME} cannot be read: " in event["text"]
    assert [*JobChanges(records, run_dir, "train")()] == []
    jobs = CustomJobs(store, print, Options(work_dir=tmp_path))
    rooms = {type(each): each for each in (RunRoutes(records, jobs), JobRoutes(records, jobs))}
    for room, method, query in calls():
        with contextlib.suppress(ApiError):
            found = getattr(rooms[room], method)(LocalCall(path={"id": NAME, "kind": "runs"}, query=query))
            assert method == "log" or "cannot be read" in found["problem"]


def test_a_sound_record_is_no_problem(tmp_path: Path) -> None:
    ((name, _),) = RunChanges(WatchedRuns(Store(tmp_path)), write(tmp_path))()
    assert name == "run"
    assert shape.is_custom_job(JOB)


@pytest.mark.parametrize("status", [{"state": "JOB_STATE_RUNNING"}, {"a": 1}, JOB | {"replicas": [None]}])
def test_a_damaged_status_of_a_job_of_the_api_is_not_shown(status: dict[str, Any]) -> None:
    assert LiveJob().poll(status, is_running=True) == []


@pytest.mark.parametrize("text", ["[" * 100_000, '{"tasks": ' * 20_000])
def test_the_list_contains_a_run_whose_record_is_nested_too_deeply(tmp_path: Path, text: str) -> None:
    run_records.write(tmp_path / NAME / "run.json", text)
    (row,) = RunList(Store(tmp_path)).page(LocalCall())["runs"]
    assert (row["id"], row["state"]) == (NAME, "DAMAGED")


@pytest.mark.parametrize("tasks", [[{}], [1], [run_records.TASK | {"start_time": 5, "state": "RUNNING"}]])
def test_the_list_contains_a_run_whose_journal_does_not_fit_its_snapshot(tmp_path: Path, tasks: list[Any]) -> None:
    run_dir = write(tmp_path, state="RUNNING")
    with run_folder.lock(run_dir):
        journal = Journal(run_dir, 0)
        content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z", state="RUNNING", tasks=tasks)
        run_records.write(run_dir / "run.json", content | {"journal": journal.position.as_json()})
        journal.append([{"time": record.now(), "task": run_records.TASK}])
        (row,) = RunList(Store(tmp_path)).page(LocalCall())["runs"]
        assert row["state"] in ("DAMAGED", "RUNNING")
        journal.close()


def test_a_step_of_a_killed_run_is_not_shown_as_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localvertex.console.runs.record._LOCK_SECONDS", 0.0)
    running = run_records.TASK | {"state": "RUNNING", "end_time": None}
    run_dir = write(tmp_path, state="RUNNING", tasks=[running])
    records = WatchedRuns(Store(tmp_path))
    changes = RunChanges(records, run_dir)
    with run_folder.lock(run_dir):
        assert next(changes())[1]["tasks"][0]["state"] == "RUNNING"
    ((_, event),) = changes()
    assert (event["run"]["state"], event["tasks"][0]["state"]) == ("FAILED", "CANCELLED")
    assert event["tasks"][0]["note"] == "stopped when the run was killed"


def test_a_resumed_run_that_is_killed_before_the_next_look_at_its_lock_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localvertex.console.runs.record._LOCK_SECONDS", 0.0)
    run_dir = write(tmp_path, state="FAILED")
    changes = RunChanges(WatchedRuns(Store(tmp_path)), run_dir)
    assert next(changes())[1]["run"]["state"] == "FAILED"
    with run_folder.lock(run_dir):
        write(tmp_path, state="RUNNING")
        assert next(changes())[1]["run"]["state"] == "RUNNING"
    ((_, event),) = changes()
    assert event["run"]["state"] == "FAILED"
    assert [*changes()] == []


def test_two_that_look_at_a_lock_do_not_see_each_other(tmp_path: Path) -> None:
    run_dir = write(tmp_path)
    run_folder.lock(run_dir).close()
    with (run_dir / record.LOCK).open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not record.is_running(run_dir)


@pytest.mark.parametrize(
    ("state", "stored", "shown"),
    [
        ("CANCELLED", "PIPELINE_STATE_FAILED", "FAILED"),
        ("CANCELLED", "PIPELINE_STATE_CANCELLING", "CANCELLED"),
        ("SUCCEEDED", "PIPELINE_STATE_FAILED", "SUCCEEDED"),
    ],
)
def test_the_page_shows_the_state_that_the_list_and_the_api_show(
    tmp_path: Path, state: str, stored: str, shown: str
) -> None:
    run_id = run_records.write_job(tmp_path, 1, state=state)
    job = run_records.job_record(run_id, "2026-01-01T00:01:00.000Z", state=stored)
    run_records.write(tmp_path / "api" / "pipelineJobs" / f"{run_id}.json", job)
    store = Store(tmp_path)
    (row,) = RunList(store).page(LocalCall())["runs"]
    ((_, event),) = RunChanges(WatchedRuns(store), tmp_path / run_id)()
    assert (row["state"], event["run"]["state"]) == (shown, shown)
    assert row["error"] == event["run"]["error"]
