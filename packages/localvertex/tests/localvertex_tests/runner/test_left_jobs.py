"""Jobs that a step creates end with the step, however that ends; an attempt that follows finds them running."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.creating import candidate, parameters, starts, starts_again

from localvertex.store import record
from vertex_testing.processes import working_in
from vertex_testing.runs import Command, Execute, FindTask, StartRun
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

TRAINS = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)"

STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {TRAINS}"

RUNNING = "code, job = create(); assert code == 200, job; wait(job, 'RUNNING'); note('job', job)\n"

HOLDS = f"{RUNNING}time.sleep(600)"

FINAL = ("JOB_STATE_CANCELLED", "JOB_STATE_FAILED")


def stored(work_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(each.read_text()) for each in sorted((work_dir / "api" / "customJobs").glob("*.json"))]


def assert_nothing_is_left(work_dir: Path) -> None:
    # The kernel needs some milliseconds to remove the mask of a killed process.
    wait_until(lambda: not working_in(work_dir), timeout_seconds=5)
    for each in stored(work_dir):
        assert not record.is_running(work_dir / "api" / "customJobs" / each["name"].rpartition("/")[2])


@pytest.mark.parametrize("end", ["", "raise SystemExit(1)", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_a_job_ends_with_the_step_that_left_it(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path, end: str
) -> None:
    found = execute(starts, parameters(tmp_path, f"{RUNNING}{end}", trains=TRAINS))
    # A step that leaves without a word is no failure to kfp, which has no outputs to miss.
    assert found["state"] == ("SUCCEEDED" if end in ("", "os._exit(0)") else "FAILED"), found
    assert_nothing_is_left(work_dir)
    (job,) = stored(work_dir)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert job["startTime"] <= job["endTime"]
    assert task(found, "start-jobs")["custom_job"]["state"] == "JOB_STATE_CANCELLED"


def test_jobs_that_ended_before_their_step_stay_as_they_are(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    code = """
for attempt in range(2):
    note(str(attempt), wait(create(attempt=attempt)[1], *ENDED))
"""
    trains = "raise SystemExit('no data')"
    found = execute(starts, parameters(tmp_path, code, trains=trains))
    assert found["state"] == "SUCCEEDED", "the step itself has not failed"
    for name in "01":
        job = json.loads((tmp_path / name).read_text())
        assert (job["state"], job["error"]["code"]) == ("JOB_STATE_FAILED", 3)
        assert "no data" in job["error"]["message"]
    assert_nothing_is_left(work_dir)
    assert {each["state"] for each in stored(work_dir)} == {"JOB_STATE_FAILED"}
    assert task(found, "start-jobs")["custom_job"]["state"] == "JOB_STATE_FAILED"


def test_a_further_attempt_adopts_the_job_of_a_killed_one(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    code = """
found = call("GET", f'?filter=labels.task%3D%22{task}%22')[1].get("customJobs", [])
note(f"found-{len(found)}", [[each["name"], each["state"], each["labels"]["attempt"]] for each in found])
if not found:
    code, job = create()
    wait(job, "RUNNING")
    note("job", job)
    os.kill(os.getpid(), 9)
(job,) = found
open(os.path.join(folder, "go"), "w").close()
note("ended", wait(job, *ENDED))
"""
    trains = "import os, sys, time\nwhile not os.path.exists(sys.argv[2]): time.sleep(0.05)"
    values = parameters(tmp_path, code, trains=trains)
    values["worker_pool_specs"][0]["container_spec"]["args"] = ["a", f"{tmp_path}/go"]
    found = execute(starts_again, values)
    assert found["state"] == "SUCCEEDED", found
    assert task(found, "start-jobs")["attempts"] == 2
    job, ended = (json.loads((tmp_path / name).read_text()) for name in ("job", "ended"))
    assert json.loads((tmp_path / "found-0").read_text()) == []
    assert json.loads((tmp_path / "found-1").read_text()) == [[job["name"], "JOB_STATE_RUNNING", "0"]]
    assert (ended["name"], ended["state"]) == (job["name"], "JOB_STATE_SUCCEEDED")
    assert [each["state"] for each in stored(work_dir)] == ["JOB_STATE_SUCCEEDED"]
    (replica,) = task(found, "start-jobs")["custom_job"]["replicas"]
    assert replica["num_starts"] == 1


def test_a_step_whose_attempts_are_used_up_leaves_no_job(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    found = execute(starts_again, parameters(tmp_path, f"{RUNNING}raise SystemExit(1)", trains=TRAINS))
    assert found["state"] == "FAILED"
    assert_nothing_is_left(work_dir)
    assert [each["state"] for each in stored(work_dir)] == ["JOB_STATE_CANCELLED"] * 3


def test_a_step_that_ends_while_it_creates_jobs_leaves_none(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    code = """
import threading

def create_many():
    for number in range(200):
        note(f"answer-{number}", create(attempt=number)[0])
        time.sleep(0.2)

threading.Thread(target=create_many, daemon=True).start()
end = time.monotonic() + 120
while not os.path.exists(os.path.join(folder, "answer-2")):
    assert time.monotonic() < end
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""
    found = execute(starts, parameters(tmp_path, code, trains=TRAINS))
    assert found["state"] == "FAILED"
    assert_nothing_is_left(work_dir)
    assert len(stored(work_dir)) >= 3
    assert {each["state"] for each in stored(work_dir)} == {"JOB_STATE_CANCELLED"}


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(start_run: StartRun, tmp_path: Path) -> Start:
    """Start a run whose step waits for its job, and wait until that runs."""

    def start(pipeline: Any, code: str, *options: str, trains: str = TRAINS) -> subprocess.Popen[str]:
        (tmp_path / "values.json").write_text(json.dumps(parameters(tmp_path, code, trains=trains)))
        process = start_run(pipeline, "--parameter-file", str(tmp_path / "values.json"), *options)
        wait_until(lambda: (tmp_path / "job").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        return process

    return start


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_stopped_run_leaves_no_job(started: Start, work_dir: Path, numbers: list[signal.Signals]) -> None:
    # Only a second signal ends this training at once.
    trains, grace = (TRAINS, "60") if len(numbers) == 1 else (STUBBORN, "300")
    process = started(starts, HOLDS, "--grace", grace, trains=trains)
    for each in numbers:
        os.kill(process.pid, each)
        # Two signals at once may arrive as one.
        time.sleep(1)
    process.communicate(timeout=120)
    assert_nothing_is_left(work_dir)
    assert [each["state"] for each in stored(work_dir)] == ["JOB_STATE_CANCELLED"]
    content = record.read(work_dir / "stopped")
    assert content["state"] == "CANCELLED"
    (entry,) = [each for each in content["tasks"] if each["name"] == "start-jobs"]
    assert entry["custom_job"]["state"] == "JOB_STATE_CANCELLED"


def test_a_run_that_is_stopped_between_two_attempts_leaves_no_job(started: Start, work_dir: Path) -> None:
    process = started(starts_again, f"{RUNNING}raise SystemExit(1)", "--max-backoff", "600")
    wait_until(lambda: "retry in" in json.dumps(record.read(work_dir / "stopped")), timeout_seconds=60)
    (job,) = stored(work_dir)
    assert job["state"] == "JOB_STATE_RUNNING"
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=120)
    assert_nothing_is_left(work_dir)
    assert [each["state"] for each in stored(work_dir)] == ["JOB_STATE_CANCELLED"]


def test_a_killed_run_leaves_no_job_and_the_next_start_says_so(
    started: Start, command: Command, start_server: Callable[..., Server], work_dir: Path
) -> None:
    process = started(starts, HOLDS, trains=STUBBORN)
    process.kill()
    process.communicate()
    wait_until(lambda: not working_in(work_dir))
    assert_nothing_is_left(work_dir)
    (job,) = stored(work_dir)
    assert job["state"] == "JOB_STATE_RUNNING"
    found = start_server().request("GET", f"/v1/{job['name']}").json()
    assert (found["state"], found["error"]["code"]) == ("JOB_STATE_FAILED", 10)
    assert found["startTime"] <= found["endTime"]


def test_a_resumed_run_does_not_take_the_job_of_a_killed_one_for_running(
    started: Start, command_process: Command, tmp_path: Path, work_dir: Path
) -> None:
    code = """
found = call("GET", "?filter=labels.run_id%3D%22r%22")[1].get("customJobs", [])
note(f"found-{len(found)}", [each["state"] for each in found])
code, job = create()
wait(job, "RUNNING")
note("job", job)
time.sleep(0 if found else 600)
"""
    process = started(starts, code)
    process.kill()
    process.communicate()
    done = command_process("run", "--resume", "stopped")
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "found-1").read_text()) == ["JOB_STATE_FAILED"]
    assert sorted(each["state"] for each in stored(work_dir)) == ["JOB_STATE_CANCELLED", "JOB_STATE_FAILED"]
    assert_nothing_is_left(work_dir)


def submitted(server: Server, compiled_file: Path, values: dict[str, Any]) -> str:
    body = {
        "displayName": "starts",
        "pipelineSpec": json.loads(compiled_file.read_text()),
        "runtimeConfig": {"gcsOutputDirectory": "/unused", "parameterValues": values},
    }
    answer = server.call("POST", "pipelineJobs", body)
    assert answer.ok, answer.text
    return str(answer.json()["name"])


@pytest.mark.parametrize("end", ["cancel", "SIGTERM", "SIGKILL"])
def test_a_server_leaves_no_job_of_a_step(
    start_server: Callable[..., Server], compiled: Any, tmp_path: Path, work_dir: Path, end: str
) -> None:
    server = start_server()
    name = submitted(server, compiled(starts), parameters(tmp_path, HOLDS, candidate(), trains=TRAINS))
    wait_until(lambda: (tmp_path / "job").exists())
    (job,) = stored(work_dir)
    listed = server.request("GET", "/v1/projects/p/locations/us-central1/customJobs").json()["customJobs"]
    assert [(each["name"], each["state"]) for each in listed] == [(job["name"], "JOB_STATE_RUNNING")]
    if end == "cancel":
        server.request("POST", f"/v1/{name}:cancel", json={}).raise_for_status()
        wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "PIPELINE_STATE_CANCELLED")
    else:
        server.end(getattr(signal, end))
        wait_until(lambda: not working_in(work_dir))
    assert_nothing_is_left(work_dir)
    found = (server if end == "cancel" else start_server()).request("GET", f"/v1/{job['name']}").json()
    assert found["state"] == ("JOB_STATE_FAILED" if end == "SIGKILL" else "JOB_STATE_CANCELLED")
    assert found["endTime"]


def test_the_console_injects_a_fault_into_the_job_of_a_step(
    start_server: Callable[..., Server], compiled: Any, tmp_path: Path, work_dir: Path
) -> None:
    server = start_server()
    code = f"{RUNNING}note('ended', wait(job, *ENDED))"
    trains = "import os, time; time.sleep(0 if os.path.exists('again') else 600 if open('again', 'w') else 0)"
    name = submitted(server, compiled(starts), parameters(tmp_path, code, trains=trains))
    run_id = name.rpartition("/")[2]
    wait_until(lambda: (work_dir / run_id / "start-jobs" / "again").exists())
    body = {"task": "start-jobs", "replica": "workerpool0-0", "action": "SIGKILL"}
    answer = server.request("POST", f"/local/runs/{run_id}:fault", json=body)
    assert answer.ok, answer.text
    wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "PIPELINE_STATE_SUCCEEDED")
    assert json.loads((tmp_path / "ended").read_text())["state"] == "JOB_STATE_SUCCEEDED"
    (entry,) = [each for each in record.read(work_dir / run_id)["tasks"] if each["name"] == "start-jobs"]
    assert [each["num_starts"] for each in entry["custom_job"]["replicas"]] == [2]


def test_a_token_ends_with_its_step(
    start_server: Callable[..., Server], compiled: Any, tmp_path: Path, work_dir: Path
) -> None:
    server = start_server()
    code = "note('job', json.load(open(os.environ['LOCALVERTEX_ENDPOINT']))); note('body', body()); call('GET', '')"
    name = submitted(server, compiled(starts), parameters(tmp_path, code))
    wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "PIPELINE_STATE_SUCCEEDED")
    token, body = (json.loads((tmp_path / each).read_text()) for each in ("job", "body"))
    headers = {"Authorization": f"Bearer {token['token']}"}
    for method in ("GET", "POST"):
        answer = server.request(method, "/v1/projects/p/locations/us-central1/customJobs", json=body, headers=headers)
        assert answer.status_code == 403, answer.text
    assert stored(work_dir) == []


def test_a_client_of_the_server_cancels_the_job_of_a_step(
    start_server: Callable[..., Server], compiled: Any, tmp_path: Path, work_dir: Path
) -> None:
    server = start_server()
    code = f"{RUNNING}note('ended', wait(job, *ENDED))"
    name = submitted(server, compiled(starts), parameters(tmp_path, code, trains=TRAINS))
    wait_until(lambda: (tmp_path / "job").exists())
    (job,) = stored(work_dir)
    server.request("POST", f"/v1/{job['name']}:cancel", json={}).raise_for_status()
    wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "PIPELINE_STATE_SUCCEEDED")
    assert json.loads((tmp_path / "ended").read_text())["state"] == "JOB_STATE_CANCELLED"
    assert_nothing_is_left(work_dir)
