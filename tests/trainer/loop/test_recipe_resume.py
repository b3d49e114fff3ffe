"""A whole run with every state that a recipe adds, killed again and again: the weights of an undisturbed run."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints
from tests.support.job import EXACT_RUN, Job
from tests.support.modules import run_module, start_module

pytestmark = pytest.mark.slow
RECIPE = {
    "optimizer": {
        "class_name": "AdamW",
        "config": {"use_ema": True, "ema_momentum": 0.9, "gradient_accumulation_steps": 3, "global_clipnorm": 1.0},
    },
    "learning_rate": {
        "class_name": "CosineDecay",
        "config": {"initial_learning_rate": 0.0, "warmup_target": 0.005, "warmup_steps": 5},
    },
    "loss": {"class_name": "CategoricalFocalCrossentropy", "config": {"label_smoothing": 0.05}},
    "class_weights": "balanced",
    "sampling": "balanced",
    "augmentation": "strong",
}


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_a_run_that_is_killed_again_and_again_has_the_weights_of_an_undisturbed_one(
    digits_directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "recipe.yaml").write_text(json.dumps(RECIPE))
    common = [f"--dataset={digits_directory}", f"--recipe=@{tmp_path / 'recipe.yaml'}", *EXACT_RUN, "--augment=shift"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = run_module("trainer.task", *common, f"--checkpoint-directory={whole}")
    assert done.returncode == 0, done.stderr
    for number in itertools.count():
        before = max(checkpoints.steps(str(killed)), default=0) if killed.exists() else 0
        process = start_module("trainer.task", *common, f"--checkpoint-directory={killed}")
        while process.poll() is None and number < 3:
            # Killed at the first checkpoint that this attempt has written.
            if killed.exists() and max(checkpoints.steps(str(killed)), default=0) > before:
                process.kill()
        process.communicate(timeout=300)
        if process.returncode == 0:
            break
    assert number == 3
    for name in ("run_id", "weights_sha256", "best_step", "validation_loss", "batch_digests"):
        assert result(killed)[name] == result(whole)[name]


@pytest.mark.soak
def test_two_workers_see_the_batches_of_one_and_their_evaluator_the_averages(
    digits_directory: Path, tmp_path: Path
) -> None:
    # Without the key that works on one device only.
    optimizer = {"class_name": "AdamW", "config": {"use_ema": True, "ema_momentum": 0.9, "clipnorm": 1.0}}
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE | {"optimizer": optimizer}))
    common = [f"--dataset={digits_directory}", f"--recipe=@{tmp_path / 'recipe.json'}", "--epochs=2"]
    found = {}
    for workers, *others in ((1,), (2, "evaluator")):
        folder = tmp_path / str(workers)
        arguments = [*common, "--global-batch-size=32", "--keep-checkpoints=9", f"--checkpoint-directory={folder}"]
        run = Job(folder, arguments, workers, *others)
        run.run(max_attempts=1)
        found[workers] = result(folder)
    assert found[1]["run_id"] == found[2]["run_id"]
    assert found[1]["batch_digests"] == found[2]["batch_digests"]
    by_chief, by_evaluator = (
        {event["step"]: event["loss"] for event in run.events(replica) if event["event"] == "evaluate"}
        for replica in ("workerpool0-0", "workerpool3-0")
    )
    common_steps = {*by_chief} & {*by_evaluator}
    assert common_steps
    for step in common_steps:
        assert by_chief[step] == pytest.approx(by_evaluator[step], rel=1e-4)
