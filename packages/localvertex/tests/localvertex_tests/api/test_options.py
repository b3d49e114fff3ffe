"""`--image` and `--fault` of `serve`, which apply to each job that it receives."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

# Waits to be killed, then crashes once, then succeeds.
PROGRAM = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
while not (folder / "go").exists(): time.sleep(0.01)
failed = folder / "failed"
if not failed.exists():
    failed.touch()
    os.kill(os.getpid(), 9)
"""

FAULT = "SIGKILL workerpool0-0 at 1s"


@dsl.pipeline(name="one-job")
def one_job(pools: list) -> None:
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


@pytest.fixture
def server(start_server: Callable[..., Server], tmp_path: Path) -> Server:
    """Start a server with a local command for an image, another image that no job uses, and a fault."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    images = ["--image", f"gcr.io/x/y:1={sys.executable} {path}", "--image", "gcr.io/other:1=true"]
    return start_server(*images, "--fault", FAULT)


def pools(folder: Path) -> list[dict[str, Any]]:
    container = {"image_uri": "gcr.io/x/y:1", "args": [str(folder)]}
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


def test_they_apply_to_custom_jobs(server: Server, tmp_path: Path) -> None:
    body = {"displayName": "job", "jobSpec": {"workerPoolSpecs": pools(tmp_path)}}
    answer = server.call("POST", "customJobs", body)
    assert answer.status_code == 200, answer.text
    path = f"customJobs/{answer.json()['name'].rpartition('/')[2]}"
    wait_until(lambda: f"fault: {FAULT}" in server.text and "restart 1 of 5" in server.text)
    (tmp_path / "go").touch()
    found = wait_until(lambda: (job := server.call("GET", path).json()).get("endTime") and job)
    assert found["state"] == "JOB_STATE_SUCCEEDED", server.text
    assert "restart 2 of 5" in server.text


def test_they_apply_to_the_custom_jobs_of_pipelines(server: Server, compile_pipeline: Any, tmp_path: Path) -> None:
    spec = json.loads(compile_pipeline(one_job, tmp_path / "one.json").read_text())
    body = {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": {"pools": pools(tmp_path)}}}
    answer = server.call("POST", "pipelineJobs?pipelineJobId=one", body)
    assert answer.status_code == 200, answer.text
    logs = server.work_dir / "one"
    wait_until(lambda: any("restart 1 of 5" in path.read_text() for path in logs.rglob("log.txt")))
    assert any(f"fault: {FAULT}" in path.read_text() for path in logs.rglob("log.txt"))
    (tmp_path / "go").touch()
    found = wait_until(lambda: (job := server.call("GET", "pipelineJobs/one").json()).get("endTime") and job)
    assert found["state"] == "PIPELINE_STATE_SUCCEEDED", server.text
    assert any("restart 2 of 5" in path.read_text() for path in logs.rglob("log.txt"))
    # The same pipeline again: its job has the fault, too, so that it does not come from the cache.
    assert server.call("POST", "pipelineJobs?pipelineJobId=two", body).status_code == 200
    wait_until(lambda: server.call("GET", "pipelineJobs/two").json().get("endTime"))
    record = json.loads((server.work_dir / "two" / "run.json").read_text())
    assert [each["state"] for each in record["tasks"]] == ["SUCCEEDED"]


def test_a_fault_for_a_replica_that_the_job_lacks_fails_the_job(
    start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = start_server("--fault", "SIGKILL workerpool1-0 at 1s", "--image", "gcr.io/x/y:1=true")
    answer = server.call("POST", "customJobs", {"displayName": "j", "jobSpec": {"workerPoolSpecs": pools(tmp_path)}})
    path = f"customJobs/{answer.json()['name'].rpartition('/')[2]}"
    found = wait_until(lambda: (job := server.call("GET", path).json()).get("endTime") and job)
    assert found["state"] == "JOB_STATE_FAILED"
    assert "the job has no workerpool1-0; it has workerpool0-0" in found["error"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fault", "explode"], "--fault 'explode': expected"),
        (["--image", "python:3.11"], "expected IMAGE=COMMAND"),
        (["--gcs-root", "missing"], "--gcs-root missing: expected an existing folder"),
    ],
)
def test_wrong_values_are_refused_before_the_server_starts(words: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "localvertex", "serve", "--work-dir", "runs", "--port", "0", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
