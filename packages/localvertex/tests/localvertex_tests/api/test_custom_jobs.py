"""customJobs through the real SDK: replicas are processes, with the states and errors of the service."""

import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from google.api_core import exceptions

from vertex_testing.processes import command_line, has_ended
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

SHOW_PATHS = "import os; print(os.environ['AIP_MODEL_DIR'], os.environ['CLUSTER_SPEC'])"
WAIT = "import time; print('up', flush=True); time.sleep(300)"


def pool(code: str, num_replicas: int = 1) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": num_replicas,
        "container_spec": {"image_uri": "python:3.11", "command": ["python", "-c", code]},
    }


@pytest.fixture
def new_custom_job(sdk: Any) -> Any:
    """Build a CustomJob of the SDK without submitting it."""

    def new(server: Server, *pools: dict[str, Any], **options: Any) -> Any:
        defaults = {"display_name": "job", "staging_bucket": "gs://bucket"}
        return sdk(server).CustomJob(worker_pool_specs=list(pools), **(defaults | options))

    return new


def log_of(server: Server, job: Any, replica: str) -> str:
    path = server.work_dir / "api" / "customJobs" / job.name / f"{replica}.log"
    return path.read_text() if path.exists() else ""


def test_a_job_of_two_pools_ends_with_its_primary(server: Server, new_custom_job: Any, sdk: Any) -> None:
    job = new_custom_job(server, pool(SHOW_PATHS), pool(WAIT), base_output_dir="gs://bucket/out", labels={"a": "b"})
    job.submit()
    job._block_until_complete()
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    words = log_of(server, job, "workerpool0-0")
    # A bucket is a folder of the work folder.
    assert words.startswith(str(server.work_dir / "buckets" / "bucket" / "out" / "model"))
    assert '"workerpool1"' in words
    found = sdk(server).CustomJob.list(filter=f'labels.a=b AND name="{job.resource_name}"')
    assert [each.state.name for each in found] == ["JOB_STATE_SUCCEEDED"]
    job.delete()
    assert not (server.work_dir / "api" / "customJobs" / job.name).exists()


def test_a_job_is_cancelled_with_all_its_processes(server: Server, new_custom_job: Any) -> None:
    job = new_custom_job(server, pool(WAIT), pool(WAIT, 2))
    job.submit()
    names = ("workerpool0-0", "workerpool1-0", "workerpool1-1")
    wait_until(lambda: all("up" in log_of(server, job, name) for name in names))
    wait_until(lambda: job.state.name == "JOB_STATE_RUNNING")
    job.cancel()
    wait_until(lambda: job.state.name == "JOB_STATE_CANCELLED")
    left = psutil.Process(server.process.pid).children(recursive=True)
    assert not [each for each in left if "time.sleep(300)" in " ".join(command_line(each))]


def test_a_failed_job_names_the_replica_and_the_reason(server: Server, new_custom_job: Any) -> None:
    job = new_custom_job(server, pool("raise SystemExit('no data')"))
    job.submit()
    with pytest.raises(RuntimeError, match="no data"):
        job._block_until_complete()
    assert (job.state.name, job.error.code) == ("JOB_STATE_FAILED", 3)
    assert "workerpool0-0" in job.error.message


def test_a_machine_that_does_not_exist_is_refused(server: Server, new_custom_job: Any) -> None:
    wrong = pool(WAIT)
    wrong["machine_spec"] = {
        "machine_type": "a2-highgpu-1g",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 1,
    }
    with pytest.raises(exceptions.BadRequest, match="a2-highgpu-1g"):
        new_custom_job(server, wrong).submit()


def test_a_job_that_ended_with_the_server_is_failed(start_server: Callable[..., Server], new_custom_job: Any) -> None:
    server = start_server()
    job = new_custom_job(server, pool(WAIT))
    job.submit()
    wait_until(lambda: "up" in log_of(server, job, "workerpool0-0"))
    left = psutil.Process(server.process.pid).children(recursive=True)
    server.end(signal.SIGKILL)
    again = start_server()
    # It is running as long as one of its processes is.
    wait_until(lambda: again.call("GET", f"customJobs/{job.name}").json()["state"] == "JOB_STATE_FAILED")
    answer = again.call("GET", f"customJobs/{job.name}").json()
    assert "create it again" in answer["error"]["message"]
    wait_until(lambda: not [each for each in left if not has_ended(each)])


@pytest.mark.parametrize(
    ("container", "spec", "text"),
    [
        ({}, {"scheduling": {"timeout": "-5s"}}, "scheduling.timeout -5s: expected a positive duration"),
        ({"env": [{"name": "A=B", "value": "c"}]}, {}, "a variable in env is called 'A=B'"),
        ({"env": [{"name": "A", "value": "b\0c"}]}, {}, "contains a NUL character"),
        ({"args": ["a\0b"]}, {}, "contains a NUL character"),
        ({"args": ["--out=gs://../../x"]}, {}, "gs://../../x' points outside its bucket"),
        ({}, {"baseOutputDirectory": {"outputUriPrefix": "gs://../../x"}}, "gs://../../x' points outside its bucket"),
    ],
)
def test_what_no_process_could_receive_is_refused(
    server: Server, container: dict[str, Any], spec: dict[str, Any], text: str
) -> None:
    found = pool(WAIT)
    found["container_spec"] |= container
    body = {"displayName": "refused", "jobSpec": {"workerPoolSpecs": [found], **spec}}
    before = server.call("GET", "customJobs").json()
    answer = server.call("POST", "customJobs", body)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert text in answer.json()["error"]["message"]
    assert server.call("GET", "customJobs").json() == before
