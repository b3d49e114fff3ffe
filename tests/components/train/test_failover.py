"""A training over several machines, on real jobs of `localvertex serve`: one job at a time, found again, never left."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from exact_resume.files import storage
from localvertex._base import step_endpoint
from vertex_testing.forks import Forks, Process
from vertex_testing.server import Server

ROOT = Path(__file__).parents[3]
SPOT = {"machine_type": "n1-standard-4", "scheduling_strategy": "SPOT"}
STANDARD = {"machine_type": "n1-standard-4", "scheduling_strategy": "STANDARD"}
ELSEWHERE = {**STANDARD, "region": "europe-west4"}

RUN = "import json, sys; from components.train.on_candidates import train; train(**json.load(open(sys.argv[1])))"
# Google's client takes a second of processor time to import.
STEPS = Forks("google.cloud.aiplatform_v1", "components.train.on_candidates")

Step = Callable[..., Process]


@pytest.fixture
def start(server: Server, reachable: None, tmp_path: Path) -> Iterator[Step]:
    """Start the step `train` of a task with a program, as its container does."""
    steps: list[Process] = []

    def start_step(program: str, *candidates: dict[str, Any], task: str = "7", **settings: Any) -> Process:
        limits = {"timeout_seconds": 600, "fallbacks": [SPOT], "max_preemptions": 3, "preemption_window_seconds": 60}
        pools = [{"container_spec": {"image_uri": "any/image", "command": [sys.executable, "-c"], "args": [program]}}]
        inputs = {
            "journey": str(tmp_path / "journey.html"),
            "machines": {},
            "gcp_resources": str(tmp_path / "gcp_resources"),
            "is_finished": False,
            "worker_pool_specs": pools,
            "candidates": [{"accelerator_count": "0", "replica_count": "1", **each} for each in candidates],
            "labels": {"team": "vision"},
            "display_name": "training",
            "run_id": tmp_path.name[:40],
            "base_output_directory": str(tmp_path / "run"),
            "service_account": "",
            "network": "",
            "tensorboard": "",
            "kms_key": "",
            "task": task,
            "region": "us-central1",
            "pipeline_root": str(server.work_dir),
            "settings": {**limits, **settings},
        }
        (tmp_path / "inputs.json").write_text(json.dumps(inputs))
        env = os.environ | {step_endpoint.MARKER: str(tmp_path)}
        step = STEPS.start(["-c", RUN, str(tmp_path / "inputs.json")], cwd=ROOT, env=env, stdout=PIPE, stderr=PIPE)
        steps.append(step)
        return step

    yield start_step
    for step in steps:
        if step.poll() is None:
            step.kill()
        step.communicate()
    for job in jobs(server, tmp_path):
        server.call("POST", f"customJobs/{job['name'].rpartition('/')[2]}:cancel", {})


def jobs(server: Server, tmp_path: Path) -> list[dict[str, Any]]:
    """Return the jobs of the run of a test, in all regions, the oldest first."""
    found = []
    for region in ("us-central1", "europe-west4"):
        path = f"/v1/projects/local-project/locations/{region}/customJobs?filter=labels.run_id={tmp_path.name[:40]}"
        found += server.request("GET", path).json().get("customJobs", [])
    return sorted(found, key=lambda job: str(job["createTime"]))


def legs(tmp_path: Path) -> list[dict[str, Any]]:
    return [leg for path in (tmp_path / "run/journey").glob("*.json") for leg in storage.read_json(path)["legs"]]


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def running(server: Server, tmp_path: Path) -> Any:
    return wait_for(lambda: [job for job in jobs(server, tmp_path) if job["state"] == "JOB_STATE_RUNNING"])[0]


def test_a_training_ends_on_the_first_machine(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("print('trained')", STANDARD, ELSEWHERE)
    out, err = step.communicate(timeout=60)
    assert step.returncode == 0, err
    (job,) = jobs(server, tmp_path)
    assert job["labels"] == {
        "team": "vision",
        "run_id": tmp_path.name[:40],
        "task": "7",
        "candidate": "0",
        "attempt": "1",
    }
    assert job["jobSpec"]["scheduling"]["timeout"] == "600s"
    resources = json.loads((tmp_path / "gcp_resources").read_text())["resources"]
    assert resources == [
        {"resourceType": "CustomJob", "resourceUri": f"https://us-central1-aiplatform.googleapis.com/v1/{job['name']}"}
    ]
    assert [leg["why"] for leg in legs(tmp_path)] == ["finished"]
    assert "candidate 0 (1 x n1-standard-4 without GPUs, STANDARD in us-central1): finished; waited" in out
    assert "finished" in (tmp_path / "journey.html").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1024,1024]",
        "429 The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus",
        "Resources are insufficient in region: us-central1.",
    ],
)
def test_an_error_of_the_program_is_no_shortage_whatever_it_says(
    start: Step, server: Server, tmp_path: Path, text: str
) -> None:
    for _ in range(2):
        # The second attempt of the step, as the pipeline retries it, trains nothing again.
        step = start(f"import sys; print({text!r}, file=sys.stderr); sys.exit(8)", STANDARD, ELSEWHERE)
        _, err = step.communicate(timeout=60)
        assert step.returncode == 1
        assert text in err.splitlines()[-1] or "exit" in err.splitlines()[-1]
        assert len(jobs(server, tmp_path)) == 1
    assert [leg["why"] for leg in legs(tmp_path)] == ["failed"]


EVENTS = """
import os, signal, sys, time
from exact_resume.events.log import EventLog
log = EventLog(os.environ["AIP_CHECKPOINT_DIR"], "workerpool0-0")
log.write("start")
"""


def test_a_program_that_crashes_is_not_preempted(start: Step, server: Server, tmp_path: Path) -> None:
    step = start(f"{EVENTS}os.kill(os.getpid(), signal.SIGSEGV)", SPOT, STANDARD, max_preemptions=0)
    step.communicate(timeout=120)
    assert step.returncode == 1
    (leg,) = legs(tmp_path)
    assert leg["why"] == "failed"
    events = (tmp_path / "run/checkpoints/events/workerpool0-0.jsonl").read_text()
    # Vertex AI's rules restart it.
    assert events.count("start") > 1


@pytest.mark.parametrize(
    "evidence", ["log.write('notice', message='', kind='preempted')", "log.write('exit', code=143)"]
)
def test_a_spot_machine_that_is_preempted_too_often_is_given_up(
    start: Step, server: Server, tmp_path: Path, evidence: str
) -> None:
    program = f"{EVENTS}if os.path.exists('often'): time.sleep(60)\nopen('often', 'w')\n{evidence}\nsys.exit(134)"
    step = start(program, SPOT, {**STANDARD, "max_wait_seconds": 5}, max_preemptions=0)
    wait_for(lambda: len(legs(tmp_path)) == 2)
    step.send_signal(signal.SIGTERM)
    step.communicate(timeout=60)
    assert [leg["why"] for leg in legs(tmp_path)] == ["preempted", "interrupted"]


def test_a_killed_step_finds_its_job(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("import time; time.sleep(4)", STANDARD)
    job = running(server, tmp_path)
    step.kill()
    step.wait()
    again = start("import time; time.sleep(4)", STANDARD)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert [each["name"] for each in jobs(server, tmp_path)] == [job["name"]]
    assert [leg["why"] for leg in legs(tmp_path)] == ["finished"]


def test_a_step_killed_before_the_answer_finds_its_job(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("import time; time.sleep(4)", STANDARD)
    job = running(server, tmp_path)
    step.kill()
    step.wait()
    content = storage.read_json(tmp_path / "run/journey/7.json")
    content["legs"][0]["job"] = ""
    storage.write_json(tmp_path / "run/journey/7.json", content)
    again = start("import time; time.sleep(4)", STANDARD)
    assert again.communicate(timeout=60)[1] == ""
    assert [each["name"] for each in jobs(server, tmp_path)] == [job["name"]]


def test_a_cancelled_step_leaves_no_job(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("import time; time.sleep(60)", STANDARD, ELSEWHERE)
    running(server, tmp_path)
    step.send_signal(signal.SIGTERM)
    out, err = step.communicate(timeout=60)
    assert step.returncode == 143, err
    assert out.splitlines()[-1] == "stopped: the training job is cancelled"
    assert [job["state"] for job in jobs(server, tmp_path)] == ["JOB_STATE_CANCELLED"]
    assert [leg["why"] for leg in legs(tmp_path)] == ["interrupted"]


def test_a_job_that_somebody_cancels_is_not_trained_again(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("import time; time.sleep(60)", STANDARD, ELSEWHERE)
    number = running(server, tmp_path)["name"].rpartition("/")[2]
    server.call("POST", f"customJobs/{number}:cancel", {}).raise_for_status()
    _, err = step.communicate(timeout=60)
    assert step.returncode == 1
    assert "JOB_STATE_CANCELLED" in err.splitlines()[-1]
    assert len(jobs(server, tmp_path)) == 1


def test_two_pipeline_runs_of_one_training_take_turns(start: Step, server: Server, tmp_path: Path) -> None:
    program = "import os, time; time.sleep(2)"
    one = start(program, STANDARD)
    running(server, tmp_path)
    two = start(program, ELSEWHERE, task="8")
    for step in (one, two):
        assert step.communicate(timeout=60)[1] == ""
        assert step.returncode == 0
    first, second = jobs(server, tmp_path)
    assert first["endTime"] <= second["createTime"]


def test_a_deleted_job_is_a_failure(start: Step, server: Server, tmp_path: Path) -> None:
    step = start("pass", STANDARD)
    assert step.communicate(timeout=60)[1] == ""
    content = storage.read_json(tmp_path / "run/journey/7.json")
    content["legs"][0]["why"] = ""
    storage.write_json(tmp_path / "run/journey/7.json", content)
    (job,) = jobs(server, tmp_path)
    server.call("DELETE", f"customJobs/{job['name'].rpartition('/')[2]}").raise_for_status()
    again = start("pass", STANDARD)
    assert again.communicate(timeout=60)[1]
    assert again.returncode == 1
