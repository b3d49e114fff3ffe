"""Killed, frozen and preempted by HTTP, a real job of two replicas neither loses nor repeats a step that counts."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.jobs.training import NUM_STEPS, PRIMARY, RESULT, TASK, WORKER, Training, one_job

from localvertex.jobs.faults import requests
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def server(start_server: Callable[..., Server]) -> Server:
    return start_server()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


@pytest.fixture
def spec(compile_pipeline: Any, tmp_path: Path) -> dict[str, Any]:
    """Return the compiled pipeline."""
    found: dict[str, Any] = json.loads(compile_pipeline(one_job, tmp_path / "one.json").read_text())
    return found


def test_a_job_survives_all_three_faults(server: Server, training: Training, spec: dict[str, Any]) -> None:
    watch = training.start(server, spec)
    job = watch.trains(1)
    assert job["goodput"]["fraction"] > 0, "so far"
    assert list(job["timeline"]) == [PRIMARY, WORKER]
    assert watch.fault(replica=WORKER, action="SIGKILL").ok
    job = watch.trains(2)
    # The primary is killed for the restart, unless it has noticed the loss of its peer before.
    assert job["status"]["replicas"][1]["exit_codes"] == [137]
    assert job["goodput"]["num_failures"] == 1
    assert job["steps"][0]["resumes"][0][1] % 10 == 0, "from a checkpoint"
    assert watch.fault(replica=WORKER, action="SIGSTOP").ok
    watch.wait(lambda job: job["status"]["replicas"][1]["condition"] == "frozen")
    training.notice_silence(watch)
    job = watch.trains(3)
    assert job["status"]["replicas"][0]["exit_codes"][1:] == [134]
    assert watch.fault(replica=PRIMARY, action="preempt", grace_seconds=20).ok
    job = watch.trains(4)
    assert (job["status"]["num_restarts"], job["status"]["num_preemptions"]) == (3, 1)
    training.hurry()
    job = watch.wait(lambda job: job["status"]["state"] == "JOB_STATE_SUCCEEDED")
    assert training.result == RESULT
    assert job["goodput"]["num_steps"] == NUM_STEPS
    faults = [(each["action"], each["replica"]) for each in job["events"] if each["kind"] == "fault"]
    assert faults == [("SIGKILL", WORKER), ("SIGSTOP", WORKER), ("preempt", PRIMARY)]
    assert watch.fault(replica=WORKER, action="SIGKILL").status_code == 400, "it has ended"


def test_what_cannot_be_broken_is_refused_in_one_line(server: Server, training: Training, spec: dict[str, Any]) -> None:
    watch = training.start(server, spec)
    watch.trains(1)
    kill = {"replica": WORKER, "action": "SIGKILL"}
    for body, code, text in (
        (
            {"replica": "workerpool2-0", "action": "SIGKILL"},
            400,
            "the job has no workerpool2-0; it has workerpool0-0, ",
        ),
        ({"replica": WORKER, "action": "melt"}, 400, "action 'melt': expected SIGKILL, SIGTERM, SIGSTOP, preempt, "),
        ({"replica": WORKER, "action": "SIGKILL", "grace_seconds": 5}, 400, "SIGKILL has no grace time"),
        (kill | {"task": "other"}, 404, "a custom job of the step 'other' of one is not found"),
        (kill | {"task": "../one"}, 404, "is not found"),
        (kill | {"task": 7}, 404, "is not found"),
    ):
        answer = watch.fault(**body)
        assert (answer.status_code, text in answer.json()["error"]["message"]) == (code, True), answer.text
        assert "\n" not in answer.json()["error"]["message"]
    assert server.request("POST", "/local/runs/two:fault", json=kill | {"task": TASK}).status_code == 404
    assert server.request("POST", "/local/jobs/1:fault", json=kill).status_code == 404
    assert not list(server.work_dir.rglob(requests.FILE)), "nothing was asked for"
    # A link that a replica has put into its folder does not lead to another run.
    folder = next(server.work_dir.rglob("workerpool0-0.log")).parent
    other = server.work_dir / "other"
    other.mkdir()
    (folder / requests.FILE).symlink_to(other / requests.FILE)
    assert watch.fault(**kill).status_code == 500
    assert not any(other.iterdir())
    server.call("POST", "pipelineJobs/one:cancel", {})
    wait_until(lambda: server.call("GET", "pipelineJobs/one").json().get("endTime"))
    (folder / requests.FILE).unlink()
    answer = watch.fault(**kill)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "the run one is not running")
    # The page of the run is written after its end.
    wait_until((server.work_dir / "one" / "run.html").is_file)
    shutil.rmtree(server.work_dir / "one")
    assert watch.fault(**kill).status_code == 404


def test_a_request_that_its_job_has_not_read_does_nothing_after_a_resume(
    server: Server, training: Training, compile_pipeline: Any, tmp_path: Path
) -> None:
    """The run is one of a terminal: it is killed between the request and its reading."""
    file = compile_pipeline(one_job, tmp_path / "one.json")
    command = [sys.executable, "-m", "localvertex", "run", "--work-dir", str(server.work_dir)]
    values = [f"--parameter=pools={json.dumps(training.pools)}", f"--parameter=base={training.base}"]
    terminal = subprocess.Popen([*command, "--run-id", "one", *values, str(file)], stdout=subprocess.DEVNULL)
    try:
        watch = Training.watch(server)
        watch.trains(1)
        assert watch.fault(replica=WORKER, action="SIGKILL").ok, "requests reach it from the server, too"
        watch.trains(2)
        terminal.send_signal(signal.SIGSTOP)
        assert watch.fault(replica=WORKER, action="SIGKILL").ok
        asked = next(server.work_dir.rglob(requests.FILE)).read_text()
        assert asked.count('"SIGKILL"') == 2
    finally:
        terminal.kill()
        terminal.wait()
    training.hurry()
    resumed = subprocess.run([*command, "--resume", "one"], capture_output=True, text=True, timeout=300, check=False)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert training.result == RESULT
    job = watch.read()
    assert job["status"]["num_restarts"] == 0
    assert "fault" not in {each["kind"] for each in job["events"]}
