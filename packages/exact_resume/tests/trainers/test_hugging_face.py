"""Hugging Face's Trainer: killed anywhere, it ends with the bits and the logs of an undisturbed training."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("hugging_faces.py")
TORCH = Path(__file__).parents[4] / ".venv-torch" / "bin" / "python"
"""The interpreter of `make venv-torch`."""
NUM_STEPS = {
    "accumulation": 18,
    "bf16": 25,
    "iterable": 30,
    "iterable of datasets": 30,
    "short epochs": 30,
    "early stopping": None,
    "fine-tuning": 20,
}
"""Of cases that have not those of three epochs; None: the training ends early."""
EXACT = (
    *("warm-up", "cosine, epochs", "accumulation", "plateau", "bf16", "scaler", "early stopping", "best"),
    *("group by length", "weighted", "gradient checkpointing", "lora", "compile", "noise in two processes", "iterable"),
    *("iterable of datasets", "callbacks", "short epochs", "thawed", "own saves", "evaluation at the start"),
    "fine-tuning",
)

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(1800)]


def printed(folder: Path, *cases: str) -> list[Any]:
    if not TORCH.exists():
        pytest.skip("needs PyTorch in an environment of its own: make venv-torch")
    words = [str(TORCH), str(PROGRAM), str(folder), *cases]
    variables = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=1700)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what was found by the name of the case."""
    return dict(zip(EXACT, printed(tmp_path_factory.mktemp("exact"), *EXACT), strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_a_disturbed_training_ends_as_an_undisturbed_one(found: dict[str, Any], name: str) -> None:
    whole, disturbed = found[name]["whole"], found[name]["disturbed"]
    killed_in_between = [-9] if name == "accumulation" else []
    assert whole.pop("codes") == [[0]]
    codes = disturbed.pop("codes")
    # Without an evaluation, it is neither killed nor stopped in one.
    expected = [-9, 143, 0, 0, 0] if name == "fine-tuning" else [-9, *killed_in_between, 143, -9, 143, 0]
    assert codes == [[code] for code in expected]
    for each in (whole, disturbed):
        assert each.pop("steps_saved")[0] == each["step"]
    assert disturbed == whole
    num_steps = NUM_STEPS.get(name, 33)
    assert (whole["step"] == num_steps) is (num_steps is not None)


def test_the_logs_and_files_are_those_of_the_trainer(found: dict[str, Any]) -> None:
    evaluations = [each["step"] for each in found["warm-up"]["whole"]["history"] if "eval_loss" in each]
    assert evaluations == [*map(str, range(5, 31, 5)), "33"]
    assert found["warm-up"]["whole"]["outputs"] == []
    assert found["own saves"]["whole"]["outputs"] == [f"checkpoint-{step}" for step in (10, 20, 30, 33)]
    stopped = found["early stopping"]["whole"]
    assert stopped["stop_reason"] == f"the Trainer stopped the training after step {stopped['step']}"
    assert stopped["best_step"] < stopped["step"] < 33
    best = found["best"]["whole"]
    losses = {each["step"]: float(each["eval_loss"]) for each in best["history"] if "eval_loss" in each}
    assert best["best_step"] == int(min(losses, key=losses.__getitem__))
    assert best["metrics"]["eval_loss"] == min(losses.values())


def test_after_the_loss_of_the_best_checkpoint_the_next_start_trains_it_again(tmp_path: Path) -> None:
    (found,) = printed(tmp_path, "lost best")
    whole, disturbed = found["whole"], found["disturbed"]
    assert (whole.pop("codes"), disturbed.pop("codes")) == ([[0]], [[1], [0]])
    assert [each.pop("steps_saved")[0] for each in (whole, disturbed)] == [33, 33]
    assert whole["best_step"] < 33
    assert disturbed == whole


def test_each_epoch_has_each_example_once(found: dict[str, Any]) -> None:
    for name in ("warm-up", "accumulation", "group by length", "own saves", "lora"):
        seen, per_epoch = found[name]["disturbed"]["seen"], NUM_STEPS.get(name, 33) // 3
        for first in range(0, 3 * per_epoch, per_epoch):
            lines = [line for step in range(first, first + per_epoch) for line in seen[str(step)]]
            assert sorted(int(row) for line in lines for row in line.split()) == list(range(84))


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (found,) = printed(tmp_path_factory.mktemp("workers"), "two workers")
    return dict(found)


def test_two_workers_end_as_without_interruption(two_workers: dict[str, Any]) -> None:
    whole, disturbed = two_workers["whole"], two_workers["disturbed"]
    assert whole.pop("codes") == [[0, 0]]
    assert disturbed.pop("codes") == [[134, -9], [143, 143], [134, -9], [143, 143], [0, 0]]
    assert [each.pop("steps_saved")[0] for each in (whole, disturbed)] == [33, 33]
    assert disturbed == whole


def test_another_number_of_workers_has_the_same_batches(two_workers: dict[str, Any]) -> None:
    whole, other = (
        {step: sorted(int(row) for line in lines for row in line.split()) for step, lines in found["seen"].items()}
        for found in (two_workers["whole"], two_workers["other"])
    )
    assert other == whole
    assert two_workers["other"]["codes"] == [[143], [143, 143], [0]]
    assert two_workers["other"]["weights"] != two_workers["whole"]["weights"]


REFUSALS = {
    "FSDP": "FSDP divides the model between processes",
    "DEEPSPEED": "DEEPSPEED divides the model between processes",
    "tensor parallelism": "tensor, context or sequence parallelism divides the model",
    "auto_find_batch_size": "auto_find_batch_size changes the batches",
    "enable_jit_checkpoint": "enable_jit_checkpoint saves at SIGTERM itself",
    "ignore_data_skip": "ignore_data_skip repeats examples",
    "split_batches": "split_batches and dispatch_batches divide the batches",
    "seed of a collator": "the data collator has a seed",
    "moved method": "WithoutMethod has no _load_scaler, on which a resume depends",
    "moved counter": "WithoutCounter has no _tr_loss, on which a resume depends",
    "callback": "callback Holder has an attribute that cannot be saved (state 'callbacks.",
    "iterable in processes": "an iterable Stream that several processes read",
    "another rate": "config.arguments.learning_rate is 0.01 there and 0.5 here",
    "other frozen parameters": "config.frozen_parameters is ",
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    (found,) = printed(tmp_path_factory.mktemp("refused"), "refused")
    return dict(found)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_does_not_resume_exactly_is_refused_by_name(refused: dict[str, str], name: str) -> None:
    assert REFUSALS[name] in refused[name]
    assert "\n" not in refused[name]
