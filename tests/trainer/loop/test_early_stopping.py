"""A run that stops early stops at the same step with the same weights, whatever happens to it and its event log."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.result_file import is_finished
from localvertex._base.userinput.errors import UserError
from tests.support.modules import call_module
from trainer.checkpoints.identity import run_id
from trainer.config import TrainConfig

EXACT = ["--exact", "--epochs=30", "--global-batch-size=64", "--learning-rate=0.02", "--checkpoint-every-steps=2"]
PLANNED_STEPS = 90
ABORTED = {-signal.SIGABRT, 134}


def test_patience_is_part_of_the_identity_unless_it_is_off() -> None:
    """Today's run ids without patience are in test_identity.py."""
    ids = [run_id(config, "data", "") for config in (TrainConfig(), TrainConfig(patience=0, minimum_accuracy_gain=0.0))]
    assert len({*ids}) == 1
    others = [TrainConfig(patience=2), TrainConfig(patience=3), TrainConfig(patience=3, minimum_accuracy_gain=0.1)]
    assert len({*ids, *(run_id(config, "data", "") for config in others)}) == 4


def test_parameter_servers_are_refused() -> None:
    TrainConfig().check_for_parameter_servers(exact=False)
    with pytest.raises(UserError, match="patience=2 does not work with parameter servers"):
        TrainConfig(patience=2).check_for_parameter_servers(exact=False)


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_workers", "patience", "metric"),
    [
        (1, 2, "accuracy"),
        pytest.param(2, 1, "accuracy", marks=pytest.mark.soak),
        pytest.param(1, 2, "macro-f1", marks=pytest.mark.soak),
        pytest.param(2, 1, "macro-f1", marks=pytest.mark.soak),
    ],
)
def test_a_run_that_is_ended_at_every_validation_stops_as_an_undisturbed_one(
    digits_directory: Path, tmp_path: Path, num_workers: int, patience: int, metric: str
) -> None:
    flags = [f"--dataset={digits_directory}", *EXACT, f"--patience={patience}", f"--metric={metric}"]
    command = [sys.executable, "-m", "tests.support.killed_in_validation", str(num_workers), str(tmp_path), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    logs = "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(tmp_path.glob("*.log")))
    assert done.returncode == 0, done.stderr + logs
    undisturbed, *attempts, before_the_result, last = json.loads(done.stdout)
    assert {*undisturbed, *last} == {0}, logs
    assert before_the_result[0] == -signal.SIGKILL
    # One worker is killed or stopped at each validation, and aborts the other one.
    assert all({*codes} & {-signal.SIGKILL, 128 + signal.SIGTERM} for codes in attempts), logs
    assert all({*codes} <= {-signal.SIGKILL, 128 + signal.SIGTERM} | ABORTED for codes in attempts), logs
    one, other = tmp_path / "undisturbed", tmp_path / "killed"
    scores = checkpoints.load(str(one), result(one)["final_step"]).validations
    assert [score.step for score in scores] == [3 * n for n in range(1, len(scores) + 1)]
    assert len(attempts) == len(scores) > patience
    assert result(one)["final_step"] == scores[-1].step < PLANNED_STEPS == result(one)["num_planned_steps"]
    assert result(one)["best_step"] == scores[-1 - patience].step
    of_best = {"metric": metric, "score": scores[-1 - patience].score} if metric != "accuracy" else {}
    assert {name: result(one)[name] for name in ("metric", "score") if name in result(one)} == of_best
    assert {score.score is None for score in scores} == {metric == "accuracy"}
    assert result(one)["stop_reason"].startswith("no improvement in ")
    # The event log in the same folder was damaged and deleted in turns; only measured values depend on it.
    measured = ("images_per_second", "images_per_second_per_device", "num_restarts", "num_skipped_lines", "seal")
    assert {k: v for k, v in result(other).items() if k not in measured} == {
        k: v for k, v in result(one).items() if k not in measured
    }
    assert len(result(other)["batch_digests"]) == result(other)["final_step"]
    assert checkpoints.load(str(other), result(other)["final_step"]).validations == scores
    assert is_finished(str(other))
    assert checkpoints.best(str(other)).step == result(other)["best_step"]
    if num_workers == 1:
        refuse_others(flags, other)


def refuse_others(flags: list[str], folder: Path) -> None:
    """A finished run only prints its result; another patience or more epochs is another run."""
    before = sorted(os.listdir(folder))
    done = call_module("trainer.task", f"--checkpoint-directory={folder}", *flags)
    assert done.returncode == 0, done.stderr
    assert f"of {PLANNED_STEPS} (stopped early: no improvement in 2 validations), best at step" in done.stdout
    for flag, named in (("--patience=0", "patience is 2 there and 0 here"), ("--epochs=31", "epochs is 30 there")):
        other = call_module("trainer.task", f"--checkpoint-directory={folder}", *flags, flag)
        assert other.returncode == 2
        assert named in other.stderr
        assert other.stderr.count("\n") == 1
    assert sorted(os.listdir(folder)) == before
