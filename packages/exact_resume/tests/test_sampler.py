"""Each epoch visits every example at most once, whichever way the batches are divided and wherever a run resumes."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from exact_resume import sampler as sampler_module
from exact_resume.errors import InputError
from exact_resume.sampler import Sampler, permuted


@pytest.mark.parametrize("count", [1, 2, 3, 255, 1000, 2**16, 2**16 + 1, 2**16 + 2, 2**17, 2**18 + 1])
def test_an_epoch_has_every_example_once(count: int) -> None:
    assert np.array_equal(np.sort(permuted(0, count, 3, 1, count)), np.arange(count))


def test_a_part_of_an_epoch_is_the_same_in_every_request() -> None:
    whole = permuted(0, 300_000, 7, 2, 300_000)
    assert np.array_equal(permuted(1000, 70_000, 7, 2, 300_000), whole[1000:70_000])


def test_the_numbers_stay_the_same() -> None:
    """A change would resume a run in another order."""
    digest = hashlib.sha256()
    for count in (10, 1000, 70_000, 10**6, 2**33):
        digest.update(permuted(0, min(count, 1000), 5, 9, count).astype("<i8").tobytes())
    assert permuted(0, 5, 5, 9, 5).tolist() == [2, 0, 4, 3, 1]
    assert digest.hexdigest()[:16] == "1409e47bc38e1a4e"


def test_batches_cross_the_pieces_in_which_they_are_computed() -> None:
    sampler = Sampler(num_examples=200_000, global_batch_size=70_001, seed=1)
    seen = np.concatenate([sampler.indices(step) for step in range(sampler.steps_per_epoch)])
    assert len(np.unique(seen)) == len(seen) == 2 * 70_001


def test_epochs_leave_out_other_examples() -> None:
    sampler = Sampler(num_examples=10, global_batch_size=3, seed=0)
    assert sampler.steps_per_epoch == 3
    left_out = [
        set(range(10)) - {*np.concatenate([sampler.indices(3 * epoch + step) for step in range(3)]).tolist()}
        for epoch in range(8)
    ]
    assert {len(each) for each in left_out} == {1}
    assert len(set.union(*left_out)) > 2


@pytest.mark.parametrize(("num_workers", "num_micro_batches"), [(1, 1), (2, 1), (3, 1), (2, 4), (5, 3)])
def test_workers_and_micro_batches_divide_a_batch(num_workers: int, num_micro_batches: int) -> None:
    sampler = Sampler(num_examples=1000, global_batch_size=64, num_micro_batches=num_micro_batches)
    workers = [SimpleNamespace(rank=rank, num_workers=num_workers) for rank in range(num_workers)]
    for step in (0, 14, 15, 40):
        shards = [sampler.shard(step, worker, micro=micro) for micro in range(num_micro_batches) for worker in workers]
        assert np.array_equal(np.concatenate(shards), sampler.indices(step))
        sizes = {len(shard) for shard in shards}
        assert max(sizes) - min(sizes) <= 2 - (num_workers == 1 or num_micro_batches == 1)


def test_a_resumed_loader_gets_the_batches_that_come_next() -> None:
    sampler = Sampler(num_examples=100, global_batch_size=8, seed=4, num_micro_batches=2)
    second = SimpleNamespace(rank=1, num_workers=2)
    undisturbed = list(sampler.batches(start=0, stop=30, worker=second))
    resumed = list(sampler.batches(start=0, stop=17, worker=second)) + list(
        sampler.batches(start=17, stop=30, worker=second)
    )
    assert resumed == undisturbed
    assert len(undisturbed) == 60


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_examples": 0}, "num_examples is 0; expected a whole number from 1"),
        ({"global_batch_size": 101}, "global_batch_size is 101; expected a whole number from 1 to 100"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": True}, "seed is True"),
        ({"num_micro_batches": 9}, "num_micro_batches is 9; expected a whole number from 1 to 8"),
        ({"global_batch_size": 8.0}, "global_batch_size is 8.0"),
    ],
)
def test_numbers_out_of_range_are_refused(fields: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampler(**{"num_examples": 100, "global_batch_size": 8, **fields})


def test_a_part_that_does_not_exist_is_refused() -> None:
    sampler = Sampler(num_examples=100, global_batch_size=8)
    with pytest.raises(InputError, match="expected 0 to 0"):
        sampler.shard(0, SimpleNamespace(rank=0, num_workers=1), micro=1)


def test_few_examples_have_256_orders_each_of_which_is_computed_once() -> None:
    """An epoch of few steps would cost more than these."""
    sampler = Sampler(num_examples=100, global_batch_size=64, seed=17)
    before = sampler_module._of_all_epochs.cache_info()
    orders = [sampler.indices(step).tolist() for step in range(1000)]
    assert sampler_module._of_all_epochs.cache_info().misses - before.misses == 256
    assert orders[256:512] == orders[:256]
    assert len({*map(tuple, orders)}) == 256
