"""A server that is killed or stopped during a run, and started again."""

import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from vertex_testing.processes import have_ended
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


def start_long_run(server: Server, new_job: Any) -> None:
    job = new_job(server, job_id="long", parameter_values={"seconds": 300})
    job.submit()
    wait_until(lambda: "time.sleep" in str(server.call("GET", "pipelineJobs/long").json()) and children(server))


def children(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children(recursive=True)


def state(server: Server) -> str:
    return str(server.call("GET", "pipelineJobs/long").json()["state"])


def test_a_run_that_ended_with_the_server_is_failed_and_can_be_repeated(
    start_server: Callable[..., Server], new_job: Any, command: Any
) -> None:
    server = start_server()
    start_long_run(server, new_job)
    left = children(server)
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    # It was killed while it wrote the record.
    partial = server.work_dir / "long" / ".run.json.0123abcd.partial"
    partial.write_text("{")
    again = start_server()
    wait_until(lambda: not partial.exists())
    wait_until(lambda: state(again) == "PIPELINE_STATE_FAILED")
    wait_until(lambda: have_ended(left))
    error = again.call("GET", "pipelineJobs/long").json()["error"]
    assert error["message"] == "the process that ran it was killed"
    # The same id is free once the failed run has been deleted.
    assert again.call("DELETE", "pipelineJobs/long").json()["done"] is True
    job = new_job(again, job_id="long")
    job.submit()
    job.wait()
    assert state(again) == "PIPELINE_STATE_SUCCEEDED"


def test_a_stopped_server_ends_its_runs(start_server: Callable[..., Server], new_job: Any) -> None:
    server = start_server()
    start_long_run(server, new_job)
    left = children(server)
    assert server.end(signal.SIGTERM) == -signal.SIGTERM
    wait_until(lambda: have_ended(left))
    again = start_server()
    answer = again.call("GET", "pipelineJobs/long").json()
    assert (answer["state"], answer["error"]["code"]) == ("PIPELINE_STATE_FAILED", 9)
    assert "localvertex run --resume long" in answer["error"]["message"]


def test_a_work_directory_has_one_server(start_server: Callable[..., Server], command: Any) -> None:
    server = start_server()
    done = command("serve", "--port", "0", "--work-dir", server.work_dir)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another server uses" in done.stderr
