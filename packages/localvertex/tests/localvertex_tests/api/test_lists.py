"""Lists of a real server with thousands of runs: through the SDK, while runs arrive, and on a full disk."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.support.run_records import write_job

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

NUM_RUNS = 2000

MAX_GROWTH_BYTES = 32 << 20


def ids(jobs: list[Any]) -> list[str]:
    return [each.resource_name.rpartition("/")[2] for each in jobs]


@pytest.mark.soak
def test_the_sdk_lists_2000_runs_while_others_arrive(
    start_server: Callable[..., Server], sdk: Any, tmp_path: Path
) -> None:
    work_dir = tmp_path / "runs"
    expected = [write_job(work_dir, number) for number in range(NUM_RUNS)][::-1]
    server = start_server()
    platform = sdk(server)
    assert ids(platform.PipelineJob.list()) == expected
    memory = psutil.Process(server.process.pid).memory_info().rss
    done, arrived = threading.Event(), list[str]()

    def interfere() -> None:
        while not done.wait(0.05):
            arrived.append(write_job(work_dir, 10_000 + len(arrived)))

    thread = threading.Thread(target=interfere)
    thread.start()
    try:
        found = ids(platform.PipelineJob.list(order_by="create_time", filter='display_name:"run-0*"'))
        assert found == expected[::-1]
        found = ids(platform.PipelineJob.list())
    finally:
        done.set()
        thread.join()
    assert arrived
    assert [each for each in found if each in expected] == expected
    assert len(set(found)) == len(found)
    assert {*ids(platform.PipelineJob.list())} == {*expected, *arrived}
    assert psutil.Process(server.process.pid).memory_info().rss < memory + MAX_GROWTH_BYTES
    assert len(server.get("/local/runs?page_size=200").json()["runs"]) == 200
    assert "Traceback" not in server.text


def test_lists_answer_on_a_full_disk(start_server: Callable[..., Server], tmp_path: Path) -> None:
    expected = [write_job(tmp_path / "runs", number) for number in range(30)][::-1]
    server = start_server()

    def found() -> list[str]:
        return [each["displayName"] for each in server.call("GET", "pipelineJobs").json()["pipelineJobs"]]

    with server.full_disk():
        assert found() == found() == expected
        assert server.get("/local/runs").status_code == 200
    assert found() == expected
    with server.full_disk():
        (server.work_dir / "run-00007" / "run.json").unlink()
        expected.remove("run-00007")
        assert found() == found() == expected
    assert found() == expected
    assert "Traceback" not in server.text


def test_runs_of_other_processes_are_in_the_next_list(
    start_server: Callable[..., Server], light_pipeline: dict[str, Any], tmp_path: Path, command_process: Any
) -> None:
    server, file = start_server(), tmp_path / "light.json"
    file.write_text(json.dumps(light_pipeline))
    body = {"pipelineSpec": light_pipeline}
    server.call("POST", "pipelineJobs", body, params={"pipelineJobId": "submitted"}).raise_for_status()

    def states() -> list[str]:
        return [each["state"] for each in server.call("GET", "pipelineJobs").json()["pipelineJobs"]]

    wait_until(lambda: states() == ["PIPELINE_STATE_SUCCEEDED"])

    def shown() -> list[str]:
        return [each["id"] for each in server.get("/local/runs").json()["runs"]]

    assert shown() == ["submitted"]
    done = command_process("run", file, "--work-dir", server.work_dir, "--run-id", "from-outside")
    assert done.returncode == 0, done.stderr
    assert shown() == ["from-outside", "submitted"]
    done = command_process("clean", "submitted", "--yes", "--work-dir", server.work_dir)
    assert done.returncode == 0, done.stderr
    assert states() == []
    assert shown() == ["from-outside"]
