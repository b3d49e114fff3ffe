"""The routes of jobs: a fault reaches only the job of the run and step that the request names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.access.step_access import StepAccess
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.jobs.routes import JobRoutes
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.record import WatchedRuns
from localvertex.jobs.faults import requests
from localvertex.runner.engine import Options
from localvertex.store import run_folder

REPLICA = {"name": "workerpool0-0", "is_running": True, "num_starts": 1, "exit_code": None, "spans": []}
KILL = {"task": "train", "replica": "workerpool0-0", "action": "SIGKILL"}


def job(job_id: str) -> dict[str, Any]:
    """Return the status of a running job."""
    return {"state": "JOB_STATE_RUNNING", "replicas": [REPLICA | {"job_id": job_id}], "num_restarts": 0}


@pytest.fixture
def routes(tmp_path: Path) -> Iterator[JobRoutes]:
    """Return the routes over two running runs with a job each, and one that has ended."""
    holds = []
    for name, state in (("one", "RUNNING"), ("two", "RUNNING"), ("ended", "SUCCEEDED")):
        task = run_records.TASK | {"state": state, "custom_job": job(f"of-{name}")}
        content = run_records.run_record(tmp_path, name, "2026-01-01T00:01:00.000Z", state=state, tasks=[task])
        run_records.write(tmp_path / name / "run.json", content)
        (tmp_path / name / "train").mkdir()
        if state == "RUNNING":
            holds.append(run_folder.lock(tmp_path / name))
    store = Store(tmp_path)
    yield JobRoutes(WatchedRuns(store), CustomJobs(store, print, Options(work_dir=tmp_path)))
    for each in holds:
        each.close()


def test_a_fault_reaches_the_job_of_its_run_only(routes: JobRoutes, tmp_path: Path) -> None:
    assert routes.fault(LocalCall(path={"kind": "runs", "id": "one"}, body=KILL)) == {}
    (path,) = tmp_path.rglob(requests.FILE)
    assert path == tmp_path / "one" / "train" / requests.FILE
    assert '"job": "of-one"' in path.read_text()


@pytest.mark.parametrize(
    ("run", "body", "text"),
    [
        ("ended", {}, "the run ended is not running"),
        ("three", {}, "the run three does not exist"),
        ("../one", {}, "does not exist"),
        ("one", {"task": "../two/train"}, "is not found"),
        ("one", {"task": "."}, "is not found"),
        ("one", {"task": None}, "is not found"),
        ("one", {"task": "evaluate"}, "is not found"),
        ("one", {"replica": "../../two/train/workerpool0-0"}, "the job has no ../../two/train/workerpool0-0"),
    ],
)
def test_nothing_else_is_broken(routes: JobRoutes, tmp_path: Path, run: str, body: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError, match=text):
        routes.fault(LocalCall(path={"kind": "runs", "id": run}, body=KILL | body))
    assert not list(tmp_path.rglob(requests.FILE))


def test_the_folder_of_a_step_that_leads_to_another_run_is_refused(routes: JobRoutes, tmp_path: Path) -> None:
    (tmp_path / "one" / "train").rmdir()
    (tmp_path / "one" / "train").symlink_to(tmp_path / "two" / "train")
    with pytest.raises(ApiError, match="is not found"):
        routes.fault(LocalCall(path={"kind": "runs", "id": "one"}, body=KILL))
    assert not list(tmp_path.rglob(requests.FILE))


def test_a_step_cannot_ask_for_a_fault_with_its_token() -> None:
    steps = StepAccess()
    token = steps.issue(lambda: None).token.encode()
    assert not steps.allows(token, "POST", "/local/runs/one:fault")
    assert not steps.allows(token, "POST", "/local/jobs/1:fault")
