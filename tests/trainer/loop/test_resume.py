"""What tests/e2e/test_resume.py leaves out: a kill inside a save, Ctrl-C, and finished runs that are damaged."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.errors import InputError
from exact_resume.events import log as event_log
from tests.support.forks import fork_module
from tests.support.job import EXACT_RUN
from tests.support.modules import start_module

pytestmark = pytest.mark.slow


def arguments(dataset: Path, folder: Path) -> list[str]:
    return [f"--dataset={dataset}", f"--checkpoint-directory={folder}", *EXACT_RUN]


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.fixture
def uninterrupted_directory(uninterrupted: Callable[[int], Path]) -> Path:
    """The checkpoint folder of a run with one worker that nothing happens to."""
    return uninterrupted(1)


def kill_at_save(step: int, dataset: Path, folder: Path) -> int:
    return fork_module("tests.support.killed_task", str(step), "--", *arguments(dataset, folder)).returncode


def assert_equal_runs(folder: Path, uninterrupted_directory: Path) -> None:
    ended, wanted = result(folder), result(uninterrupted_directory)
    assert ended["weights_sha256"] == wanted["weights_sha256"]
    for name in ("run_id", "final_step", "best_step", "validation_accuracy", "validation_loss"):
        assert ended[name] == wanted[name]
    # Nothing temporary is left behind.
    assert not [name for name in os.listdir(folder) if name.endswith(".partial")]
    # Where steps were trained twice, they gave the same numbers.
    assert validations(folder) == validations(uninterrupted_directory)


def validations(folder: Path) -> dict[int, set[tuple[float, float]]]:
    found: dict[int, set[tuple[float, float]]] = {}
    for event in event_log.read(str(folder)):
        if event["event"] == "evaluate":
            found.setdefault(event["step"], set()).add((event["loss"], event["accuracy"]))
    return found


def test_killed_just_before_a_save_is_committed(
    uninterrupted_directory: Path, digits_directory: Path, tmp_path: Path
) -> None:
    assert kill_at_save(12, digits_directory, tmp_path) == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path) if name.endswith(".partial")]
    assert max(checkpoints.steps(str(tmp_path))) < 12
    assert fork_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, uninterrupted_directory)


def test_ctrl_c_saves_and_exits_with_its_code(
    uninterrupted_directory: Path, digits_directory: Path, tmp_path: Path
) -> None:
    process = start_module("trainer.task", *arguments(digits_directory, tmp_path))
    deadline = time.monotonic() + 300
    while not any(event["event"] == "steps" for event in event_log.read(str(tmp_path))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=300)
    if process.returncode == 0:
        pytest.fail("the run finished before the signal; make it longer")
    assert process.returncode == 128 + signal.SIGINT, stderr
    assert "SIGINT: stopped after step" in stdout
    last = [event for event in event_log.read(str(tmp_path)) if event["event"] == "steps"][-1]["last_step"]
    assert checkpoints.steps(str(tmp_path))[0] == last
    assert fork_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, uninterrupted_directory)


@pytest.mark.parametrize("damaged", ["the best", "all"])
def test_a_finished_run_with_a_damaged_checkpoint_is_trained_again(
    uninterrupted_directory: Path, digits_directory: Path, tmp_path: Path, damaged: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted_directory, folder)
    best = result(folder)["best_checkpoint"]
    for path in folder.glob("step-*/variables.npz"):
        if damaged == "all" or path.parent.name == best:
            path.write_bytes(path.read_bytes()[:1000])
    assert not is_finished(str(folder))
    with pytest.raises(InputError, match="damaged"):
        checkpoints.best(str(folder))
    done = fork_module("trainer.task", *arguments(digits_directory, folder))
    assert done.returncode == 0, done.stderr
    assert is_finished(str(folder))
    assert result(folder)["weights_sha256"] == result(uninterrupted_directory)["weights_sha256"]
