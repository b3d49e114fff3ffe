"""An exact run never silently continues on other devices, because they give other weights."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.events import log as event_log
from tests.support.forks import fork_module
from tests.support.job import EXACT_RUN, Job

pytestmark = pytest.mark.slow


@pytest.fixture
def arguments(digits_directory: Path, tmp_path: Path) -> list[str]:
    return [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}", *EXACT_RUN]


@pytest.fixture
def kill_at_save(arguments: list[str]) -> Callable[..., None]:
    """Train on one device until the save of a step kills the process."""

    def run(step: int, *without: str) -> None:
        words = [word for word in arguments if word not in without]
        assert fork_module("tests.support.killed_task", str(step), "--", *words).returncode == -signal.SIGKILL

    return run


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifests(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("step-*/manifest.json"))]


def test_all_workers_refuse_other_devices_however_long_one_takes(
    arguments: list[str], kill_at_save: Callable[..., None], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    kill_at_save(12)
    before = content(run)
    job = Job(run, arguments, 2)
    job.module, job.forks = "tests.support.slow_refusal", True
    job.start()
    assert job.wait_for_all() == [2, 2], job.logs()
    job.end()
    assert job.logs().count("which would give other weights") == 2
    assert content(run) == before


def test_other_devices_are_refused_by_name_or_recorded(
    arguments: list[str], kill_at_save: Callable[..., None], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    kill_at_save(12)
    before = content(run)
    done = fork_module("trainer.task", *arguments, "--logical-cpu-devices=2")
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert f"the exact run in '{run}' was trained on 1 x CPU (" in line
    assert ", this start has 2 x CPU (" in line
    assert line.endswith(
        "; use the same devices, another --checkpoint-directory or --run-label (run_label in a pipeline), or"
        " --allow-other-devices"
    )
    assert content(run) == before
    done = fork_module("trainer.task", *arguments, "--logical-cpu-devices=2", "--allow-other-devices")
    assert done.returncode == 0, done.stderr
    one, two = json.loads((run / "result.json").read_text())["devices"]
    assert (one["from_step"], one["num_devices"], two["from_step"], two["num_devices"]) == (0, 1, 8, 2)
    notices = [event["message"] for event in event_log.read(str(run)) if event["event"] == "notice"]
    (notice,) = [text for text in notices if text.startswith("resumed on other devices, so the weights are not exact:")]
    assert ": 1 x CPU (" in notice
    assert ", from step 8 on 2 x CPU (" in notice
    # The finished run computes nothing, so the devices do not matter; the summary names the devices of the run.
    done = fork_module("trainer.task", *arguments)
    assert done.returncode == 0
    assert ", not exact on 1 x CPU (" in done.stdout


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--xla=on", ", XLA, which"),
        pytest.param("--precision=bfloat16", ", bfloat16, which", marks=pytest.mark.soak),
    ],
)
def test_another_arithmetic_is_refused_as_other_devices_are(
    arguments: list[str], kill_at_save: Callable[..., None], flag: str, named: str
) -> None:
    kill_at_save(12)
    done = fork_module("trainer.task", *arguments, flag)
    assert done.returncode == 2, done.stderr
    assert named in done.stderr


@pytest.mark.soak
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPU cores")
def test_another_number_of_cores_is_another_kind_of_cpu(
    arguments: list[str], kill_at_save: Callable[..., None], tmp_path: Path
) -> None:
    kill_at_save(12)
    core = min(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "trainer.task", *arguments]
    done = subprocess.run(
        command, preexec_fn=lambda: os.sched_setaffinity(0, {core}), check=False, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert ", 1 core), which would give other weights; " in done.stderr
    done = fork_module("trainer.task", *arguments)
    assert done.returncode == 0, done.stderr
    (devices,) = json.loads((tmp_path / "run" / "result.json").read_text())["devices"]
    assert (devices["from_step"], devices["num_devices"], devices["num_machines"]) == (0, 1, 1)
    assert ", exact on 1 x CPU (" in done.stdout


@pytest.mark.soak
def test_a_run_that_is_not_exact_moves_to_other_devices(
    arguments: list[str], kill_at_save: Callable[..., None], tmp_path: Path
) -> None:
    kill_at_save(12, "--exact")
    inexact = [word for word in arguments if word != "--exact"]
    done = fork_module("trainer.task", *inexact, "--logical-cpu-devices=2")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "result.json").read_text())["devices"] is None
    assert not any("devices" in found["extra"] for found in manifests(tmp_path / "run"))
