"""A whole run with every state that a recipe adds, killed again and again: the weights of an undisturbed run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.job import Job
from tests.support.killed_recipe import KINDS

pytestmark = pytest.mark.slow


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_a_run_that_is_killed_again_and_again_has_the_weights_of_an_undisturbed_one(
    repository: Path, digits_directory: Path, tmp_path: Path
) -> None:
    """`python -m benchmarks.soak.recipes` does it 20 times for each kind of state."""
    words = [str(digits_directory), str(tmp_path), "2", "all together"]
    flags = ["--max-steps=12", "--model=tests.support.tiny_network:build"]
    command = [sys.executable, "-m", "tests.support.killed_recipe", *words, *flags]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 2
    assert result(tmp_path / "killed")["weights_sha256"] == result(tmp_path / "whole")["weights_sha256"]


@pytest.mark.soak
def test_two_workers_see_the_batches_of_one_and_their_evaluator_the_averages(
    digits_directory: Path, tmp_path: Path
) -> None:
    # Without the key that works on one device only, and with the layers of a preset.
    optimizer = {"class_name": "AdamW", "config": {"use_ema": True, "ema_momentum": 0.9, "clipnorm": 1.0}}
    recipe = KINDS["all together"] | {"optimizer": optimizer, "augmentation": "strong"}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
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
