"""A loader of PyTorch: from any position, the batches and what they draw are those of an undisturbed iteration."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("data_loaders.py")
TORCH = Path(__file__).parents[4] / ".venv-torch" / "bin" / "python"
"""The interpreter of `make venv-torch`."""
EXACT = (
    *("shuffled", "shuffled, short batch left out", "sequential", "two processes", "two spawned processes"),
    *("weighted", "with replacement", "own sampler", "own batches", "iterable"),
)
REFUSED = {
    "counting": "Counting changes its attribute 'count' with each epoch",
    "own loader": "the training data come from a OwnLoader",
    "iterable in two processes": "the training data are an iterable Lines that several processes read",
    "out of order": "with in_order=True",
    "no batches": "batch_size=None",
}

pytestmark = [pytest.mark.slow, pytest.mark.soak]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return what was found by the name of the case."""
    if not TORCH.exists():
        pytest.skip("needs PyTorch in an environment of its own: make venv-torch")
    names = [*EXACT, *REFUSED, "divided"]
    done = subprocess.run([str(TORCH), str(PROGRAM), *names], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(names, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_from_any_position_the_batches_and_their_draws_are_the_same(found: dict[str, Any], name: str) -> None:
    case = found[name]
    assert case["is_resumed"], case
    assert case["is_undisturbed"], case
    assert case["num_noises"] == case["num_drawn"]
    assert case["num_orders"] == (1 if name == "sequential" else 3)
    is_whole = name in ("shuffled", "sequential", "two processes", "two spawned processes", "iterable")
    assert case["is_each_once"] == is_whole
    assert case["sizes"][-1] == {"shuffled, short batch left out": 4, "with replacement": 2}.get(
        name, case["sizes"][-1]
    )
    assert sum(case["sizes"]) == {"weighted": 300, "own sampler": 300, "own batches": 300, "with replacement": 70}.get(
        name, 53 if is_whole else 52
    )


@pytest.mark.parametrize("name", REFUSED)
def test_an_order_that_cannot_be_restored_is_refused_by_name(found: dict[str, Any], name: str) -> None:
    assert REFUSED[name] in found[name]["refused"]


@pytest.mark.parametrize("sampler", ["RandomSampler", "SequentialSampler", "OwnSampler", "DistributedSampler"])
def test_one_two_and_three_workers_have_the_same_batches(found: dict[str, Any], sampler: str) -> None:
    alone, *others = (found["divided"][f"{sampler} {count}"] for count in (1, 2, 3))
    assert others == [alone, alone]
    assert len(alone[-1]) == (300 if sampler == "OwnSampler" else 53) % 12 or 12


def test_batches_of_the_program_are_not_divided(found: dict[str, Any]) -> None:
    assert "OwnBatches divides the batches between workers itself" in found["divided"]["refused"][0]


def test_each_worker_has_an_example_of_a_short_batch(found: dict[str, Any]) -> None:
    assert [found["divided"][f"short {rank}"][1] for rank in range(2)] == [[52], [52]]
