"""Faults that are asked for while a job runs; whatever is in the file, only requests to this very job count."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.jobs import JobStatus, Outcome
from localvertex.jobs.faults import requests
from localvertex.jobs.faults.requests import FaultRefused, Requests
from vertex_testing.server import wait_until

Messages = Callable[..., dict[str, Any]]
RUNNING = {"name": "workerpool1-0", "is_running": True, "job_id": "a"}
STATUS = {"replicas": [RUNNING, {"name": "workerpool1-1", "is_running": False, "job_id": "a"}]}
KILL = {"replica": "workerpool1-0", "action": "SIGKILL"}


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def asked(message: Messages, tmp_path: Path, warnings: list[str]) -> Requests:
    """Return the requests to the job `a` in the test's folder."""
    job = jobs.read_job(message(("x", 1), ("x", 2)), region="us-central1", warn=print)
    return Requests(job, tmp_path, "a", warnings.append)


def test_a_request_is_a_fault_of_this_moment(asked: Requests, tmp_path: Path, warnings: list[str]) -> None:
    assert asked.new(1.0) == []
    requests.write(tmp_path, STATUS, KILL)
    requests.write(tmp_path, STATUS, KILL | {"action": "SIGSTOP"})
    requests.write(tmp_path, STATUS, KILL | {"action": "preempt", "grace_seconds": 2})
    assert list(map(str, asked.new(12.34))) == [
        "SIGKILL workerpool1-0 at 12.3s",
        "SIGSTOP workerpool1-0 at 12.3s",
        "preempt workerpool1-0 at 12.3s grace 2s",
    ]
    assert asked.new(13.0) == [], "each once"
    (warning,) = warnings
    assert "does not have strategy SPOT" in warning


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (KILL | {"replica": "workerpool2-0"}, "the job has no workerpool2-0; it has workerpool1-0, workerpool1-1"),
        (KILL | {"replica": "../x/workerpool1-0"}, "the job has no ../x/workerpool1-0"),
        (KILL | {"replica": "workerpool1-1"}, "workerpool1-1 has no running process at the moment"),
        (KILL | {"replica": 3}, "replica is missing"),
        (
            KILL | {"action": "SIGHUP"},
            "action 'SIGHUP': expected SIGKILL, SIGTERM, SIGSTOP, preempt, maintenance notice",
        ),
        (KILL | {"action": []}, "action []: expected SIGKILL, SIGTERM, SIGSTOP, preempt, maintenance notice"),
        (KILL | {"grace_seconds": 3}, "SIGKILL has no grace time; leave it out"),
        (KILL | {"action": "preempt", "grace_seconds": -1}, "grace_seconds -1: expected 0 to 3600"),
        (KILL | {"action": "preempt", "grace_seconds": True}, "grace_seconds True: expected 0 to 3600"),
        (KILL | {"action": "preempt", "grace_seconds": float("nan")}, "grace_seconds nan: expected 0 to 3600"),
        (KILL | {"job": "b"}, "job: expected replica, action and grace_seconds only"),
        ({}, "replica is missing"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_one_line(
    tmp_path: Path, content: dict[str, Any], text: str
) -> None:
    with pytest.raises(FaultRefused) as raised:
        requests.write(tmp_path, STATUS, content)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not any(tmp_path.iterdir())


def test_requests_to_another_job_or_an_earlier_attempt_do_nothing(
    asked: Requests, tmp_path: Path, warnings: list[str]
) -> None:
    requests.write(tmp_path, {"replicas": [RUNNING | {"job_id": "b"}]}, KILL)
    requests.write(tmp_path, {"replicas": [RUNNING | {"name": "workerpool3-0"}]}, KILL | {"replica": "workerpool3-0"})
    assert asked.new(1.0) == []
    assert warnings == []
    with pytest.raises(FaultRefused, match="not started by this version"):
        requests.write(tmp_path, {"replicas": [RUNNING | {"job_id": ""}]}, KILL)


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff\xfe\n",
        b"{\n",
        b"[1]\n",
        b"null\n",
        b'{"job": "a"}\n',
        b'{"job": "a", "replica": 1}\n',
        b'{"job": "a", "replica": "workerpool1-0", "action": "SIGKILL", "x": 1}\n',
        b'{"job": "a", "rep',
        b"[" * 60_000,
        b"x" * 200_000,
    ],
)
def test_garbage_in_the_file_is_ignored_with_a_warning(
    asked: Requests, tmp_path: Path, warnings: list[str], junk: bytes
) -> None:
    (tmp_path / requests.FILE).write_bytes(junk)
    requests.write(tmp_path, STATUS, KILL)
    found = [fault for _ in range(10) for fault in asked.new(1.0)]
    assert list(map(str, found)) == ["SIGKILL workerpool1-0 at 1s"]
    assert warnings[0].startswith("fault-requests.jsonl: ignored ")
    assert max(map(len, warnings)) < 500


def test_very_much_garbage_gives_few_warnings(asked: Requests, tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / requests.FILE).write_bytes(b"x\n" * 10_000)
    assert asked.new(1.0) == []
    assert len(warnings) == 5


def test_a_line_counts_when_it_is_complete(asked: Requests, tmp_path: Path, warnings: list[str]) -> None:
    requests.write(tmp_path, STATUS, KILL)
    path = tmp_path / requests.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert asked.new(1.0) == []
    path.write_bytes(whole)
    assert len(asked.new(1.0)) == 1
    assert warnings == []


def test_a_link_or_a_pipe_in_place_of_the_file_leads_nowhere(asked: Requests, tmp_path: Path) -> None:
    """A replica can write into the folder of its job, and must not reach another job by it."""
    other = tmp_path / "other"
    other.mkdir()
    path = tmp_path / requests.FILE
    path.symlink_to(other / requests.FILE)
    with pytest.raises(OSError, match="symbolic links"):
        requests.write(tmp_path, STATUS, KILL)
    assert not any(other.iterdir())
    (other / requests.FILE).write_text('{"job": "a", "replica": "workerpool1-0", "action": "SIGKILL"}\n')
    assert asked.new(1.0) == []
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError):  # noqa: PT011 - the reason depends on whether the pipe has a reader
        requests.write(tmp_path, STATUS, KILL)
    assert asked.new(1.0) == []


def test_a_linked_folder_of_a_trial_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job" / "trials").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "job" / "trials" / "1").symlink_to(tmp_path / "other")
    status = {"replicas": [RUNNING | {"name": "trials/1/workerpool0-0"}]}
    with pytest.raises(FaultRefused):
        requests.write(tmp_path / "job", status, KILL | {"replica": "trials/1/workerpool0-0"})
    assert not any((tmp_path / "other").iterdir())


def test_a_replica_that_names_another_folder_is_refused(tmp_path: Path) -> None:
    for each in ("job", "other"):
        (tmp_path / each).mkdir()
    for name in (f"{tmp_path}/other/workerpool0-0", "../other/workerpool0-0"):
        status = {"replicas": [RUNNING | {"name": name}]}
        with pytest.raises(FaultRefused, match="was not started by this version"):
            requests.write(tmp_path / "job", status, KILL | {"replica": name})
    assert [*(tmp_path / "other").iterdir()] == []


def test_a_running_job_notes_it_like_a_fault_of_the_command_line(
    message: Messages, run: Callable[..., Outcome], workspace: jobs.Workspace, log: Callable[..., str]
) -> None:
    program = "import pathlib, sys, time; path = pathlib.Path(sys.argv[1], 'again')\nif path.exists(): sys.exit()\n"
    seen: list[JobStatus] = []
    outcomes: list[Outcome] = []
    made = message((program + "path.touch(); time.sleep(600)", 1))
    # Only its second process ends, so that it must have been restarted.
    thread = threading.Thread(target=lambda: outcomes.append(run(made, observe=seen.append)))
    thread.start()
    wait_until(lambda: (workspace.folder.parent / "again").exists() and seen)
    status = json.loads(json.dumps(seen[-1].as_json()))
    requests.write(workspace.folder, status, {"replica": "workerpool0-0", "action": "SIGKILL"})
    thread.join(90)
    (outcome,) = outcomes
    assert outcome.state == "JOB_STATE_SUCCEEDED"
    assert outcome.status.num_restarts == 1
    events = [(each.kind, each.replica, each.action, each.phase) for each in outcome.status.events]
    assert events == [
        ("fault", "workerpool0-0", "SIGKILL", ""),
        ("exit", "workerpool0-0", "", ""),
        ("decision", "workerpool0-0", "restarts the replica", ""),
        ("exit", "workerpool0-0", "", ""),
        ("state", "", "", "JOB_STATE_SUCCEEDED"),
    ]
    assert "fault: SIGKILL workerpool0-0 at " in log()
    assert any(each.action == "SIGKILL" for status in seen[:-1] for each in status.events), "while it runs"
    assert [span.exit_code for span in outcome.status.replicas[0].spans] == [137, 0]
