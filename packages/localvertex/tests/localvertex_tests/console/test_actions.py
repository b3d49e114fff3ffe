"""Retry, stop and delete a run: nothing that has finished runs again, and nothing that is needed is deleted."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from kfp import dsl

from localvertex.store.record import LOCK, is_running
from vertex_testing.processes import with_own_id, working_in
from vertex_testing.runs import STEP, Command, Compile, StartRun
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@dsl.component(**STEP)
def count(folder: str) -> str:
    """Leave one file per run of this step."""
    import pathlib
    import time

    (pathlib.Path(folder) / f"count.{time.time_ns()}").touch()
    return folder


@dsl.component(**STEP)
def wait(folder: str, stays: bool = False) -> None:
    """Write the id of this process; fail when `fail` exists, end when `go` does; with `stays` ignore SIGTERM."""
    import os
    import pathlib
    import signal
    import time

    if stays:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    at = pathlib.Path(folder)
    (at / "pid").write_text(str(os.getpid()))
    while not (at / "go").exists():
        if (at / "fail").exists():
            raise RuntimeError("it was told to fail")
        time.sleep(0.02)


@dsl.pipeline
def counted(folder: str, stays: bool = False) -> None:
    wait(folder=count(folder=folder).output, stays=stays)


class Waiting:
    """The folder by which a test leads the steps of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    @property
    def num_counted(self) -> int:
        """How often the first step has run."""
        return len(list(self.folder.glob("count.*")))

    def lead(self, name: str) -> None:
        """Let the second step end so, and only so."""
        for each in ("fail", "go", "pid"):
            (self.folder / each).unlink(missing_ok=True)
        if name:
            (self.folder / name).touch()

    def pid(self) -> int:
        """Wait until the second step runs; return the id of its process."""
        path = self.folder / "pid"
        number = int(wait_until(lambda: path.is_file() and path.read_text()))
        return with_own_id(number, working_in(self.folder.parent)).pid


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path / "led")


def create(server: Server, file: Path, job_id: str, **values: Any) -> None:
    body = {"pipelineSpec": json.loads(file.read_text()), "runtimeConfig": {"parameterValues": values}}
    server.call("POST", f"pipelineJobs?pipelineJobId={job_id}", body).raise_for_status()


def act(server: Server, run_id: str, action: str, body: Any = None) -> requests.Response:
    if action == "delete":
        return server.request("DELETE", f"/local/runs/{run_id}")
    return server.request("POST", f"/local/runs/{run_id}:{action}", json=body or {})


def reason(response: requests.Response) -> str:
    assert response.status_code == 400, response.text
    text: str = response.json()["error"]["message"]
    assert "\n" not in text
    return text


def state(server: Server, job_id: str) -> str:
    """Return the state of a job as get and list show it."""
    while True:
        before, listed, after = (_got(server, job_id), _listed(server, job_id), _got(server, job_id))
        if before == after:
            assert listed == after
            return after.removeprefix("PIPELINE_STATE_")


def _got(server: Server, job_id: str) -> str:
    return str(server.call("GET", f"pipelineJobs/{job_id}").json()["state"])


def _listed(server: Server, job_id: str) -> str:
    jobs = server.call("GET", "pipelineJobs", params={"readMask": "name,state"}).json()["pipelineJobs"]
    return str({each["name"].rpartition("/")[2]: each["state"] for each in jobs}[job_id])


def read(server: Server, run_id: str) -> Any:
    return json.loads((server.work_dir / run_id / "run.json").read_text())


def test_a_failed_job_is_retried_once_and_its_finished_step_is_not_repeated(
    start_server: Any, compiled: Compile, waiting: Waiting
) -> None:
    server = start_server()
    waiting.lead("fail")
    create(server, compiled(counted), "retried", folder=str(waiting.folder))
    wait_until(lambda: state(server, "retried") == "FAILED")
    waiting.lead("")
    with ThreadPoolExecutor(4) as clicks:
        answers = list(clicks.map(lambda _: act(server, "retried", "retry"), range(4)))
    assert sorted(each.status_code for each in answers) == [200, 400, 400, 400], [each.text for each in answers]
    waiting.pid()
    assert state(server, "retried") == "RUNNING"
    assert "is running" in reason(act(server, "retried", "retry"))
    assert "is running" in reason(act(server, "retried", "delete"))
    # Vertex's own method stops it, and a job that was cancelled is retried as well.
    server.call("POST", "pipelineJobs/retried:cancel", {}).raise_for_status()
    wait_until(lambda: state(server, "retried") == "CANCELLED")
    waiting.lead("go")
    assert act(server, "retried", "retry").json() == {}
    wait_until(lambda: state(server, "retried") == "SUCCEEDED")
    assert waiting.num_counted == 1
    record = read(server, "retried")
    assert len(record["resume_times"]) == 2
    assert [each["restored"] for each in record["tasks"]] == [True, False]
    assert "has succeeded" in reason(act(server, "retried", "retry"))
    contexts = server.call("GET", "metadataStores/default/executions").json()["executions"]
    assert {each["displayName"]: each["state"] for each in contexts}["wait"] == "COMPLETE"


def test_a_run_of_a_terminal_is_retried_and_stopped_at_once_and_deleted(
    start_server: Any, compiled: Compile, command: Command, waiting: Waiting
) -> None:
    server, file = start_server(), compiled(counted)
    waiting.lead("fail")
    words = ["run", file, "--run-id", "own", "--work-dir", server.work_dir, "--parameter", f"folder={waiting.folder}"]
    assert command(*words, "--parameter", "stays=true", "--max-parallel", "3").returncode == 1
    waiting.lead("")
    act(server, "own", "retry").raise_for_status()
    pid = waiting.pid()
    assert server.call("GET", "pipelineJobs").json()["pipelineJobs"] == []
    # A graceful stop waits for the step, which ignores the signal.
    act(server, "own", "stop", {"at_once": False}).raise_for_status()
    act(server, "own", "stop", {"at_once": True}).raise_for_status()
    wait_until(lambda: read(server, "own")["state"] == "CANCELLED")
    wait_until(lambda: has_ended(pid))
    assert read(server, "own")["resume_options"] == ["--max-parallel=3"]
    assert waiting.num_counted == 1
    # Once more is harmless: it has ended.
    assert act(server, "own", "stop").json() == {}
    wait_until(lambda: act(server, "own", "delete").status_code == 200)
    assert not (server.work_dir / "own").exists()
    assert act(server, "own", "delete").status_code == 404


def has_ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_run_of_another_process_is_not_stopped_retried_or_deleted(
    start_server: Any, start_run: StartRun, waiting: Waiting
) -> None:
    server = start_server()
    process = start_run(
        counted, "--work-dir", str(server.work_dir), "--parameter", f"folder={waiting.folder}", "--grace", "0"
    )
    pid = waiting.pid()
    assert "was started in a terminal" in reason(act(server, "stopped", "stop"))
    assert "press Ctrl-C" in reason(act(server, "stopped", "stop", {"at_once": True}))
    assert "is running" in reason(act(server, "stopped", "retry"))
    assert "it is running" in reason(act(server, "stopped", "delete"))
    assert not has_ended(pid)
    waiting.lead("go")
    process.communicate(timeout=300)
    assert process.returncode == 0


def test_what_another_run_or_a_retry_needs_is_said(
    start_server: Any, compiled: Compile, command: Command, waiting: Waiting, tmp_path: Path
) -> None:
    server, file = start_server(), compiled(counted)
    waiting.lead("fail")
    words = ["run", file, "--work-dir", server.work_dir, "--parameter", f"folder={waiting.folder}", "--run-id"]
    assert command(*words, "with-options", "--allow-host-commands").returncode == 1
    assert command(*words, "changed").returncode == 1
    # Another run uses the folder of a step of `changed` as a value.
    (server.work_dir / "changed" / "count" / "fail").touch()
    other = ["--parameter", f"folder={server.work_dir / 'changed' / 'count'}"]
    assert command("run", file, "--run-id", "other", "--work-dir", server.work_dir, *other).returncode == 1
    text = reason(act(server, "with-options", "retry"))
    assert "was started with --allow-host-commands" in text
    assert f"localvertex run --resume with-options --work-dir {server.work_dir}" in text
    assert "run other refers to its files" in reason(act(server, "changed", "delete"))
    assert (server.work_dir / "changed" / "run.json").is_file()
    copy = server.work_dir / "changed" / "pipeline.json"
    copy.write_text(copy.read_text().replace("count", "account"))
    assert "is not the file that changed was started with" in reason(act(server, "changed", "retry"))
    copy.unlink()
    assert "has no copy of its compiled pipeline" in reason(act(server, "changed", "retry"))
    record = read(server, "with-options")
    moved = record | {"work_dir": str(tmp_path / "elsewhere"), "resume_options": []}
    (server.work_dir / "with-options" / "run.json").write_text(json.dumps(moved))
    assert "resume it there" in reason(act(server, "with-options", "retry"))
    assert act(server, "missing", "retry").status_code == 404
    assert act(server, "models", "delete").status_code == 404
    assert act(server, "changed", "stop", {"at_once": "yes"}).status_code == 400


def test_a_retry_that_cannot_be_recorded_is_refused_and_changes_nothing(
    start_server: Any, compiled: Compile, command: Command, waiting: Waiting
) -> None:
    server = start_server()
    waiting.lead("fail")
    words = ["run", compiled(counted), "--run-id", "full", "--work-dir", server.work_dir]
    assert command(*words, "--parameter", f"folder={waiting.folder}").returncode == 1
    assert act(server, "full", "retry").json() == {}
    folder = server.work_dir / "full"
    wait_until(lambda: read(server, "full")["state"] == "FAILED" and not is_running(folder))
    waiting.lead("go")
    before = sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir() if each.name != LOCK)
    files = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    with server.full_disk():
        for _ in range(20):
            answer = act(server, "full", "retry")
            assert (answer.status_code, answer.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED"), answer.text
            assert "the work folder cannot be used: File too large" in answer.text
    assert sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir() if each.name != LOCK) == before
    # Neither the journals nor the lock stays open.
    assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < files + 10
    assert act(server, "full", "retry").json() == {}
    wait_until(lambda: read(server, "full")["state"] == "SUCCEEDED")
    assert (waiting.num_counted, len(read(server, "full")["resume_times"])) == (1, 2)


def test_a_run_whose_server_was_killed_while_it_stopped_is_stopping_and_then_cancelled(
    start_server: Any, compiled: Compile, waiting: Waiting, start_run: StartRun
) -> None:
    server = start_server()
    create(server, compiled(counted), "left", folder=str(waiting.folder), stays=True)
    step = psutil.Process(waiting.pid())
    # The shell of the step is none of them: it ends at once.
    supervisors = [each for each in step.parents() if each.pid != server.process.pid and each.name() != "sh"]
    supervisors = supervisors[: [each.ppid() for each in supervisors].index(server.process.pid) + 1]
    act(server, "left", "stop").raise_for_status()
    # They keep the lock of the run until the step ends or the grace time is over; here until the test continues them.
    for each in supervisors:
        # The process that forks steps ends with the stop.
        with suppress(psutil.NoSuchProcess):
            each.suspend()
    server.end(signal.SIGKILL)
    server = start_server()
    assert shown(server, "left") == {"CANCELLING"}
    assert "was killed; the last processes of the run end by themselves" in reason(act(server, "left", "stop"))
    assert server.request("GET", "/local/runs/left").json()["is_ending"] is True
    assert "is running" in reason(act(server, "left", "delete"))
    step.kill()
    for each in supervisors:
        with suppress(psutil.NoSuchProcess):
            each.resume()
    wait_until(lambda: shown(server, "left") == {"CANCELLED"})
    page = server.request("GET", "/local/runs/left").json()
    assert (page["error"], page["is_ending"]) == (None, False)
    assert [each["state"] for each in page["tasks"]] == ["SUCCEEDED", "CANCELLED"]
    assert "numResumes" not in server.call("GET", "pipelineJobs/left").text
    # A terminal resumes it: that the server once stopped it no longer has an effect.
    waiting.lead("")
    resumed = start_run(None, "--resume", "left", "--work-dir", str(server.work_dir))
    waiting.pid()
    assert shown(server, "left") == {"RUNNING"}
    assert "was started in a terminal" in reason(act(server, "left", "stop"))
    waiting.lead("fail")
    resumed.communicate(timeout=60)
    assert shown(server, "left") == {"FAILED"}
    waiting.lead("")
    act(server, "left", "retry").raise_for_status()
    waiting.pid()
    act(server, "left", "stop", {"at_once": True}).raise_for_status()
    wait_until(lambda: shown(server, "left") == {"CANCELLED"})
    assert waiting.num_counted == 1


def shown(server: Server, run_id: str) -> set[str]:
    """Return the states of a run in the API, in the list of runs, and on its page; one if they agree."""
    rows = {each["id"]: each["state"] for each in server.request("GET", "/local/runs").json()["runs"]}
    return {state(server, run_id), rows[run_id], server.request("GET", f"/local/runs/{run_id}").json()["state"]}
