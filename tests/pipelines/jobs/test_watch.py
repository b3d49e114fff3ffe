"""Submitted runs are really run and watched to their end, against `localvertex serve` with the real SDK."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import PARENT, Server, wait_until

pytestmark = pytest.mark.slow


def test_a_run_is_submitted_and_its_steps_are_shown(pipelines: Any, server: Server, divide_file: Path) -> None:
    words = (*server.endpoint, "-p", "n=8", "-p", "by=2", "--labels", "team=vision", "--wait")
    account, network = "training@my-project.iam.gserviceaccount.com", "projects/1/global/networks/default"
    done = pipelines("submit", divide_file, *words, "--service-account", account, "--network", network)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(
        r"^submitted projects/local-project/locations/us-central1/pipelineJobs/divide-\d+$", done.stdout, re.M
    )
    assert re.search(r"^divide: SUCCEEDED after [\d.]+ s$", done.stdout, re.M)
    assert re.search(r"^divide-\d+: SUCCEEDED$", done.stdout.splitlines()[-1])
    submitted = done.stdout.partition("/pipelineJobs/")[2].split()[0]
    found = server.call("GET", "pipelineJobs?filter=labels.team=vision").json()["pipelineJobs"]
    (job,) = [each for each in found if each["name"].endswith(f"/{submitted}")]
    assert job["runtimeConfig"]["parameterValues"] == {"n": 8, "by": 2}
    assert (job["serviceAccount"], job["network"]) == (account, network)


def test_a_failed_run_ends_with_the_steps_own_error(pipelines: Any, server: Server, divide_file: Path) -> None:
    # The id of a run ends in the time in seconds, and a run of the test before may have this second's.
    started = int(time.time())
    wait_until(lambda: int(time.time()) > started)
    done = pipelines("submit", divide_file, *server.endpoint, "-p", "n=8", "-p", "by=0", "--wait")
    assert (done.returncode, done.stderr) == (1, "")
    assert re.search(r"^divide failed: .*division by zero", done.stdout, re.M)
    assert re.search(r"^divide-\d+: FAILED: .*division by zero", done.stdout.splitlines()[-1])


def test_ctrl_c_does_not_stop_the_run(server: Server, repository: Path, tmp_path: Path) -> None:
    from kfp import compiler, dsl

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def wait() -> None:
        import time

        time.sleep(300)

    @dsl.pipeline(name="waiting")
    def graph() -> None:
        wait()

    compiler.Compiler().compile(graph, str(tmp_path / "waiting.yaml"))
    words = [sys.executable, "-m", "pipelines", "submit", "waiting.yaml", *server.endpoint, "--wait"]
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            words, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT, env={"PYTHONPATH": str(repository)}
        )
    wait_until(lambda: "wait: RUNNING" in log.read_text() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130, log.read_text()
    found = re.search(rf"stopped watching; the pipeline is still running: {PARENT}/(pipelineJobs/\S+)", log.read_text())
    assert found, log.read_text()
    assert "Traceback" not in log.read_text()
    assert server.call("GET", found[1]).json()["state"] == "PIPELINE_STATE_RUNNING"
    server.call("POST", f"{found[1]}:cancel", {})


def test_the_replicas_own_error_is_fetched_from_its_custom_job(pipelines: Any, service: Any, divide_file: Path) -> None:
    """Google keeps a replica's error in the custom job of a step; temporary failures of the service are retried."""
    custom = f"{PARENT}/customJobs/42"
    resources = json.dumps({"resources": [{"resourceType": "CustomJob", "resourceUri": f"https://x/v1/{custom}"}]})
    train = {"taskId": "2", "parentTaskId": "1", "taskName": "train", "state": "FAILED", "error": {"message": "failed"}}
    train["execution"] = {"metadata": {"output:gcp_resources": resources}}
    job = {"name": f"{PARENT}/pipelineJobs/divide-1", "state": "PIPELINE_STATE_FAILED", "error": {"message": "train"}}
    job["jobDetail"] = {"taskDetails": [{"taskId": "1", "taskName": "divide-1", "state": "FAILED"}, train]}
    reads = []

    def answer(method: str, path: str) -> tuple[int, dict[str, Any]]:
        if "customJobs" in path:
            text = "The replica workerpool0-0 exited with a non-zero status of 2: ValueError: no images"
            return 200, {"name": custom, "error": {"code": 3, "message": text}}
        reads.append(path)
        if method == "GET" and len(reads) == 2:
            return 503, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "temporarily overloaded"}}
        return 200, job

    done = pipelines("submit", divide_file, "--endpoint", service(answer), "-p", "n=1", "--wait")
    assert (done.returncode, done.stderr) == (1, "")
    assert "train failed: failed" in done.stdout
    assert (
        f"{custom}: The replica workerpool0-0 exited with a non-zero status of 2: ValueError: no images" in done.stdout
    )
    assert len(reads) == 3
