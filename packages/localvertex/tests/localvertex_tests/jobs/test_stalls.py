"""A job that makes no progress says so, with the reason, once; one that only computes does not."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localvertex.jobs import JobState, JobStatus, Outcome, stalls
from localvertex.jobs.replica_process import ReplicaProcess
from localvertex.jobs.status import StatusFile

Messages = Callable[..., dict[str, Any]]
Run = Callable[..., Outcome]

TRAIN = """
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
log = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"]) / "events" / "workerpool0-0.jsonl"

def step(number):
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write(json.dumps({"time": time.time(), "event": "steps", "first_step": number, "last_step": number,
                               "num_steps": 2, "seconds": 0.01}) + chr(10))

def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.02)
"""

CHIEF = TRAIN + "step(1); wait_for('resumed'); step(2); time.sleep(0.5)"
WORKER = (
    TRAIN
    + "(folder / f'{os.getpid()}.pid').touch(); os.kill(os.getpid(), signal.SIGSTOP); (folder / 'resumed').touch()"
)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two minutes pass in less than a second."""
    monkeypatch.setattr(stalls, "time", SimpleNamespace(monotonic=lambda: 200 * time.monotonic()))


def quick(monkeypatch: pytest.MonkeyPatch, *, frozen_seconds: float, seconds: float) -> None:
    """Shorten the limits, but not the time."""
    for name, value in (("_FROZEN_SECONDS", frozen_seconds), ("_SECONDS", seconds), ("_CHECK_SECONDS", 0.2)):
        monkeypatch.setattr(stalls, name, value)


@pytest.mark.usefixtures("fast")
def test_a_frozen_replica_is_named_once_and_so_are_those_that_wait_for_it(
    message: Messages, run: Run, tmp_path: Path, log: Callable[..., str]
) -> None:
    seen: list[JobStatus] = []
    lines: list[str] = []

    def observe(status: JobStatus) -> None:
        seen.append(status)
        if "is frozen" in status.stalled:
            (path,) = tmp_path.glob("*.pid")
            with suppress(ProcessLookupError):  # resumed at the previous call, it may have ended since
                os.kill(int(path.stem), signal.SIGCONT)

    outcome = run(message((CHIEF, 1), (WORKER, 1)), observe=observe, report=lines.append)
    assert outcome.state is JobState.SUCCEEDED, outcome.error
    sentence = "no step for 2 min: workerpool1-0 is frozen; workerpool0-0 waits for it"
    stalled = [each.stalled for each in seen]
    assert sentence in stalled
    assert stalled[0] == stalled[-1] == outcome.status.as_json()["stalled"] == ""
    assert [line for line in lines if line.startswith("no step")] == [sentence]
    assert log().count("no step for ") == 1
    assert [each.text for each in outcome.status.events if each.kind == "stall"] == [sentence]


@pytest.mark.slow
def test_a_job_without_an_event_is_stalled_after_the_longer_time(
    message: Messages, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, frozen_seconds=0.5, seconds=1.0)
    lines: list[str] = []
    run(message((TRAIN + "step(1); time.sleep(3)", 1)), report=lines.append)
    assert lines == ["no step for 0 min"]


def test_a_program_that_logs_no_steps_may_wait(message: Messages, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch, frozen_seconds=0.5, seconds=0.5)
    lines: list[str] = []
    assert run(message(("import time; time.sleep(2)", 1)), report=lines.append).state is JobState.SUCCEEDED
    assert lines == []


@pytest.mark.slow
def test_a_short_freeze_of_a_program_that_logs_no_steps_is_no_stall(
    message: Messages, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, frozen_seconds=1.5, seconds=60.0)
    program = (
        "import os, signal, subprocess, sys, time; time.sleep(2)\n"
        "subprocess.Popen([sys.executable, '-c', 'import os, signal, sys, time; time.sleep(0.6);"
        " os.kill(int(sys.argv[1]), signal.SIGCONT)', str(os.getpid())])\n"
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )
    lines: list[str] = []
    assert run(message((program, 1)), report=lines.append).state is JobState.SUCCEEDED
    assert lines == []


def test_what_a_container_does_is_not_known_by_the_program_of_its_engine() -> None:
    names = ["replica", "command", "env", "folder", "processes", "metadata", "warn", "address"]
    values: dict[str, Any] = dict.fromkeys(names)
    of_engine, own = ReplicaProcess(**values, clean_up=["docker", "rm"]), ReplicaProcess(**values)
    for each in (of_engine, own):
        each._process, each.is_running = SimpleNamespace(is_frozen=lambda: True), True  # type: ignore[assignment]
    assert (of_engine.is_frozen(), own.is_frozen()) == (False, True)


def test_the_status_file_of_a_job_of_the_api_has_it(tmp_path: Path) -> None:
    file = StatusFile(tmp_path, lambda value: value)
    file.write(JobStatus(state=JobState.RUNNING))
    file.write(JobStatus(state=JobState.RUNNING, stalled="no step for 2 min"))
    assert StatusFile.read(tmp_path)["stalled"] == "no step for 2 min"
