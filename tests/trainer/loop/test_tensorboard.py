"""TensorBoard itself reads the logs of whole runs: a killed one, and one whose logs fail."""

import json
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.events import log as event_log
from tests.support.board_server import TensorBoard, tensorboard
from tests.support.forks import fork_module
from tests.support.job import EXACT_RUN, EXACT_RUN_STEPS

pytestmark = pytest.mark.slow
LABEL = "Second try"
PAGE = Path(__file__).parents[3] / "docs" / "tensorboard.md"
FLAGS = [*EXACT_RUN, f"--run-label={LABEL}"]
NAMES = ["one/tensorboard/convnet", "two/tensorboard/second-try"]
"""Of an undisturbed run and of a killed one."""


def result(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "result.json").read_text()))


def assert_equal(folder: Path, wanted: Path) -> None:
    for name in ("weights_sha256", "batch_digests", "validation_accuracy", "validation_loss", "final_step"):
        assert result(folder)[name] == result(wanted)[name]


@pytest.fixture(scope="module")
def logs(
    uninterrupted: Callable[[int], Path], digits_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Two runs: an undisturbed one, and one that was killed."""
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(uninterrupted(1), folder / "one")
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder / 'two'}", *FLAGS]
    killed = fork_module("tests.support.killed_task", "20", "--", *arguments)
    assert killed.returncode == -signal.SIGKILL
    done = fork_module("trainer.task", *arguments)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_killed_run_has_the_same_weights(logs: Path) -> None:
    assert_equal(logs / "two", logs / "one")


def documented(text: str, places: dict[str, Path]) -> list[str]:
    """Return the words after `python` of the documented command with a text, with folders that exist."""
    (line,) = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    python") and text in line]
    return [str(places.get(word, word)) for word in shlex.split(line)[1:]]


# Its own reader and the faster one, which it uses by default, treat restarts differently.
@pytest.mark.parametrize("reader", ["--load_fast=true", pytest.param("--load_fast=false", marks=pytest.mark.soak)])
def test_tensorboard_shows_each_step_once(logs: Path, reader: str) -> None:
    readme = (PAGE.parents[1] / "README.md").read_text()
    assert "`python -m tensorboard.main --logdir runs/training`" in readme
    arguments = [*documented("runs/training", {"runs/training": logs}), reader]
    with tensorboard(arguments, *NAMES, last_step=EXACT_RUN_STEPS) as board:
        assert board.runs() == sorted(f"{name}/{part}" for name in NAMES for part in ("train", "validation"))
        for name, folder in zip(NAMES, ("one", "two"), strict=True):
            check_curves(board, name, event_log.read(str(logs / folder)), result(logs / folder))


def check_curves(board: TensorBoard, name: str, events: list[dict[str, Any]], ended: dict[str, Any]) -> None:
    for tag in ("loss", "accuracy", "learning_rate", "images_per_second"):
        steps = [step for step, _ in board.scalars(f"{name}/train", tag)]
        assert steps == sorted(set(steps)), tag
        assert steps[-1] == EXACT_RUN_STEPS
    for tag in ("loss", "accuracy"):
        # Where a validation was repeated after the kill, it gave the same value.
        wanted = {event["step"]: event[tag] for event in events if event["event"] == "evaluate"}
        found = board.scalars(f"{name}/validation", tag)
        assert [step for step, _ in found] == sorted(wanted)
        assert dict(found) == pytest.approx(wanted)
    assert dict(board.scalars(f"{name}/validation", "accuracy"))[ended["best_step"]] == pytest.approx(
        ended["validation_accuracy"]
    )


def test_the_command_for_a_single_run(digits_directory: Path, tmp_path: Path) -> None:
    done = fork_module(
        "trainer.task", f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path}", "--epochs=2"
    )
    assert done.returncode == 0, done.stderr
    arguments = documented("RUN/", {"RUN/tensorboard": tmp_path / "tensorboard"})
    with tensorboard(arguments, "convnet", last_step=result(tmp_path)["final_step"]) as board:
        assert board.runs() == ["convnet/train", "convnet/validation"]


def test_logs_that_fail_cost_nothing_else(
    uninterrupted: Callable[[int], Path], digits_directory: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "tensorboard").write_text("in the way")
    done = fork_module("trainer.task", f"--dataset={digits_directory}", f"--checkpoint-directory={run}", *FLAGS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("TensorBoard logs cannot be written (") == 1
    assert_equal(run, uninterrupted(1))
