"""Whole runs in two phases, killed before, at and after the boundary: the weights of an undisturbed run."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.events import log as event_log
from tests.support import tiny_base
from tests.support.job import EXACT_RUN, EXACT_RUN_STEPS, Job
from trainer.config import TrainConfig

pytestmark = [
    pytest.mark.slow,
    # h5py converts the variables of Keras 3.15 in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"),
]
BOUNDARY = 40
"""A multiple of the steps between saves, not the end of an epoch."""
EVERY = 4
RECIPE = {
    "optimizer": {"class_name": "AdamW", "config": {"use_ema": True, "ema_momentum": 0.9, "global_clipnorm": 1.0}},
    "learning_rate": 0.01,
    "fine_tuning": {"start": (BOUNDARY + 0.5) / EXACT_RUN_STEPS, "layers": 5, "learning_rate_multiplier": 0.1},
}
PROGRAM = str(Path(tiny_base.__file__))
COMPARED = ("run_id", "weights_sha256", "best_step", "validation_loss", "batch_digests")


@pytest.fixture(scope="module")
def arguments(digits_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments of all runs but their folder."""
    folder = tmp_path_factory.mktemp("weights")
    recipe = f"--recipe={json.dumps(RECIPE)}"
    weights = f"--weights={tiny_base.save_weights(folder, 16)}"
    return [f"--dataset={digits_directory}", f"--model={tiny_base.NAME}", weights, recipe, *EXACT_RUN]


def run(arguments: list[str], folder: Path, *, kill_at: int = 0) -> int:
    """Train, at most to the save at a step; return the exit code."""
    before = [str(kill_at), "--"] if kill_at else []
    command = [sys.executable, PROGRAM, *before, *arguments, f"--checkpoint-directory={folder}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return {name: found[name] for name in COMPARED}


@pytest.fixture(scope="module")
def whole(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing happens to."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert run(arguments, folder) == 0
    return folder


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([BOUNDARY + 1], id="at"),
        pytest.param([BOUNDARY - 1, BOUNDARY + 1, BOUNDARY + EVERY + 2], id="around", marks=pytest.mark.soak),
    ],
)
def test_kills_before_at_and_after_the_boundary_change_nothing(
    arguments: list[str], whole: Path, tmp_path: Path, kills: list[int]
) -> None:
    folder, newest = tmp_path / "killed", []
    for step in kills:
        assert run(arguments, folder, kill_at=step) == -signal.SIGKILL
        newest.append(max(checkpoints.steps(str(folder))))
    assert newest[kills.index(BOUNDARY + 1)] == BOUNDARY
    assert newest == sorted(set(newest))
    assert run(arguments, folder) == 0
    assert result(folder) == result(whole)
    for logged in (folder, whole):
        marks = [event["fine_tuning_step"] for event in event_log.read(str(logged)) if "fine_tuning_step" in event]
        assert set(marks) == {BOUNDARY}
    windows = [event for event in event_log.read(str(whole)) if event["event"] == "steps"]
    assert any(event["last_step"] == BOUNDARY for event in windows)


@pytest.mark.soak
def test_twenty_kills_change_nothing(arguments: list[str], whole: Path, tmp_path: Path) -> None:
    folder, num_kills = tmp_path / "killed", 0
    for step in range(EVERY, EXACT_RUN_STEPS + 1, EVERY):
        if num_kills < 20 and run(arguments, folder, kill_at=step) != 0:
            num_kills += 1
    assert num_kills == 20
    assert run(arguments, folder) == 0
    assert result(folder) == result(whole)


@pytest.mark.soak
def test_one_two_and_one_workers_see_the_batches_of_one(arguments: list[str], tmp_path: Path) -> None:
    plain = [argument for argument in arguments if argument != "--exact"]
    whole, folder = tmp_path / "whole", tmp_path / "moved"
    assert run(plain, whole) == 0
    # In the first phase, over the boundary, and in the second phase.
    for num_workers, step in ((1, 30), (2, 60), (1, 0)):
        job = Job(folder, [*plain, f"--checkpoint-directory={folder}"], num_workers)
        job.script = [PROGRAM]
        if step:
            job.run_until_step(step, lambda job: job.workers[0].kill())
        else:
            job.run(max_attempts=1)
    moved, expected = result(folder), result(whole)
    assert moved["run_id"] == expected["run_id"] == json.loads((folder / "result.json").read_text())["run_id"]
    assert moved["batch_digests"] == expected["batch_digests"]
    # Dropout and sums differ with the number of devices.
    assert moved["validation_loss"] == pytest.approx(expected["validation_loss"], rel=0.2)


def test_the_boundary_is_part_of_the_identity_of_the_run() -> None:
    recipes = [json.dumps({"fine_tuning": {"start": start}}) for start in (0.3, 0.4)]
    one, other = (TrainConfig(model="resnet50", recipe=recipe) for recipe in recipes)
    assert one.fingerprint() != other.fingerprint()
