"""Two jobs on one checkpoint folder, as real processes: one trains, and a former one leaves without a trace."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints, seal
from exact_resume.checkpoints.lease import LEASE_FILE
from exact_resume.events import log as event_log
from exact_resume.files import storage
from tests.support.forks import Fork
from tests.support.job import EXACT_RUN, Job
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow
PROGRAM = "tests.support.short_lease"
PERIODS = ["0.5", "5"]
"""A heartbeat and a watch, in seconds; a loaded machine delays the heartbeat."""
Start = Callable[..., Fork]


@pytest.fixture
def start(digits_directory: Path, tmp_path: Path) -> Iterator[Start]:
    """Start the training of a job in a folder; it does not outlive the test."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:

        def call(folder: Path | str, job: str, **environment: str) -> Fork:
            # The job of two machines that it may take over from has other devices.
            words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", *EXACT_RUN]
            words.append("--allow-other-devices")
            outputs = [tmp_path / f"{name}-{next(numbers)}" for name in ("stdout", "stderr")]
            environment = {**os.environ, "CLOUD_ML_JOB_ID": job, **environment}
            process = Fork(PROGRAM, [*PERIODS, "--", *words], environment, *outputs)
            stack.callback(process.kill)
            return process

        yield call


def wait(condition: Callable[[], Any], process: Fork | None = None) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def is_stopped(process: Fork) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def content(folder: Path) -> dict[str, bytes]:
    """Return the content of all files except TensorBoard's, which are written in the background."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def starts(folder: str) -> list[int]:
    return [event["pid"] for event in event_log.read(folder) if event["event"] == "start"]


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.fixture
def wanted(uninterrupted: Callable[[int], Path]) -> dict[str, Any]:
    """The result of an undisturbed run."""
    return result(uninterrupted(1))


def assert_equal(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in ("weights_sha256", "best_step", "final_step", "batch_digests", "validation_accuracy"):
        assert found[name] == wanted[name]


def test_a_second_job_leaves_and_the_first_is_undisturbed(start: Start, tmp_path: Path, wanted: dict[str, Any]) -> None:
    folder, released = tmp_path / "run", tmp_path / "released"
    # Its first save does not end, so that it stops before the second one: only the second job could change a file.
    first = start(folder, "1", WAIT_IN_SAVE=str(released))
    wait(lambda: folder.is_dir() and [name for name in os.listdir(folder) if ".step-" in name], first)
    wait(lambda: any(event["event"] == "evaluate" for event in event_log.read(str(folder))), first)
    before = content(folder)
    second = start(folder, "2", AIP_TENSORBOARD_LOG_DIR=str(tmp_path / "board"))
    stdout, stderr = second.communicate(timeout=300)
    assert content(folder) == before
    released.touch()
    assert second.returncode == 1, stderr
    assert f"job 1 (process {first.pid} on " in stdout
    assert "nothing was changed here" in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    assert not (tmp_path / "board").exists()
    assert first.wait(300) == 0
    assert starts(str(folder)) == [first.pid]
    assert_equal(result(folder), wanted)


@pytest.mark.soak
@pytest.mark.parametrize("at_save", ["", "12"])
def test_a_frozen_job_that_was_taken_over_leaves_no_trace(
    start: Start, tmp_path: Path, wanted: dict[str, Any], at_save: str
) -> None:
    folder = tmp_path / "run"
    first = start(folder, "1", **({"STOP_AT_SAVE": at_save} if at_save else {}))
    if at_save:
        wait(lambda: is_stopped(first), first)
        assert [name for name in os.listdir(folder) if name.endswith(".partial")]
    else:
        wait(lambda: checkpoints.steps(str(folder)), first)
        first.send_signal(signal.SIGSTOP)
    second = start(folder, "2")
    wait(lambda: len(starts(str(folder))) == 2, second)
    # As long as the second one trains, and after its end.
    if at_save:
        first.send_signal(signal.SIGCONT)
    stdout, stderr = second.communicate(timeout=300)
    assert second.returncode == 0, stderr
    assert "the heartbeat of job 1 " in stdout
    before = content(folder)
    first.send_signal(signal.SIGCONT)
    _, stderr = first.communicate(timeout=300)
    assert first.returncode == 1, stderr
    assert "has taken over the run" in stderr.splitlines()[-1]
    assert content(folder) == before
    assert starts(str(folder)) == [first.pid, second.pid]
    assert_equal(result(folder), wanted)
    assert not [name for name in os.listdir(folder) if name.endswith(".partial")]
    taken_over = [n for n, event in enumerate(event_log.read(str(folder))) if event["event"] == "start"][1]
    resumed = [event["first_step"] for event in event_log.read(str(folder))[taken_over:] if event["event"] == "steps"]
    assert resumed == sorted(set(resumed)), "of one process"


def test_a_restart_of_the_same_job_does_not_wait_for_a_frozen_process(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start(folder, "1")
    wait(lambda: checkpoints.steps(str(folder)), first)
    first.send_signal(signal.SIGSTOP)
    second = start(folder, "1")
    stdout, stderr = second.communicate(timeout=300)
    assert (second.returncode, "heartbeat" in stdout) == (0, False), stderr
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=300)
    assert first.returncode == 1


@pytest.mark.parametrize("is_known_here", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_the_job_after_a_killed_one_continues(
    start: Start, tmp_path: Path, wanted: dict[str, Any], *, is_known_here: bool
) -> None:
    folder = tmp_path / "run"
    # Without a job of the service, as on a laptop.
    first = start(folder, "")
    wait(lambda: checkpoints.steps(str(folder)), first)
    first.kill()
    first.wait()
    if not is_known_here:
        path = folder / LEASE_FILE
        found = seal.without(storage.read_json(path))
        storage.write_json(path, seal.add_seal({**found, "process": {**found["process"], "boot": "another"}}))
    second = start(folder, "")
    stdout, stderr = second.communicate(timeout=300)
    assert second.returncode == 0, stderr
    assert ("has stopped; taking over" in stdout) is not is_known_here
    assert "resuming at step" in stdout
    assert_equal(result(folder), wanted)


def test_ctrl_c_gives_the_directory_back(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start(folder, "1")
    wait(lambda: checkpoints.steps(str(folder)), first)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=300)
    assert first.returncode == 130
    second = start(folder, "2")
    stdout, _ = second.communicate(timeout=300)
    assert (second.returncode, "heartbeat" in stdout, "resuming at step" in stdout) == (0, False, True)


@pytest.mark.soak
def test_a_stop_ends_the_watch(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start(folder, "1")
    wait(lambda: checkpoints.steps(str(folder)), first)
    first.send_signal(signal.SIGSTOP)
    second = start(folder, "2")
    wait(lambda: "watching its heartbeat" in second.printed()[0], second)
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=300)
    assert (second.returncode, starts(str(folder))) == (143, [first.pid])


def test_in_a_bucket_a_former_job_commits_nothing(
    start: Start, cloud_storage: CloudStorage, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    for name, value in cloud_storage.environment.items():
        monkeypatch.setenv(name, value)
    cloud_storage.buckets.create("two-jobs")
    buckets, folder = cloud_storage.buckets, "gs://two-jobs/run"

    def objects() -> dict[str, bytes]:
        names = [name for name in buckets.names("two-jobs") if "/tensorboard/" not in name]
        return {name: buckets.get("two-jobs", name).data for name in names}

    # Frozen while it commits: its check has succeeded, and the request that publishes the manifest is on its way.
    arrived, resume_request = cloud_storage.faults.hold(r"POST .*rewriteTo.*step-000000012%2Fmanifest\.json")
    cloud_storage.faults.fail(1, 503, matching=r"POST .*rewriteTo.*step-000000012%2Fmanifest\.json")
    first = start(folder, "1")
    assert arrived.wait(200)
    first.send_signal(signal.SIGSTOP)
    resume_request.set()
    second = start(folder, "2")
    stdout, stderr = second.communicate(timeout=300)
    cloud_storage.faults.clear()
    assert second.returncode == 0, stderr
    assert "has stopped; taking over" in stdout
    before = objects()
    first.send_signal(signal.SIGCONT)
    _, stderr = first.communicate(timeout=300)
    assert first.returncode == 1, stderr
    assert objects() == before
    assert starts(folder) == [first.pid, second.pid]
    assert_equal(json.loads(before["run/result.json"]), wanted)
    assert not [name for name in before if ".partial" in name]


def test_the_machines_of_a_former_job_all_leave_without_a_trace(
    start: Start, digits_directory: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", *EXACT_RUN]
    job = Job(folder, words, 2)
    job.module, job.arguments, job.forks = PROGRAM, [*PERIODS, "--", *words], True
    job.environment_of = lambda place: {"CLOUD_ML_JOB_ID": "1"}
    job.start()
    try:
        job.wait(until=lambda: bool(checkpoints.steps(str(folder))))
        for worker in job.workers:
            worker.send_signal(signal.SIGSTOP)
        second = start(folder, "2")
        _, stderr = second.communicate(timeout=300)
        assert second.returncode == 0, stderr
        before = content(folder)
        for worker in job.workers:
            worker.send_signal(signal.SIGCONT)
        codes = job.wait_for_all(120)
    finally:
        job.end()
    assert codes[0] == 1, job.logs()
    assert codes[1] in (1, -signal.SIGABRT), job.logs()
    assert content(folder) == before
