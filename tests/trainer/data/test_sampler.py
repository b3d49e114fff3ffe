"""The order of examples, whole and by blocks: a permutation per epoch, from (seed, step) alone."""

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from exact_resume import sampler as exact_resume_sampler
from exact_resume.sampler import Sampler as LibrarySampler
from localvertex._base.userinput.errors import UserError
from trainer.config import TrainConfig
from trainer.data import sampler
from trainer.data.sampler import Sampler, block_size

KNOWN_BALANCED = [[9, 1, 0, 4, 6], [2, 0, 0, 3, 6], [1, 7, 0, 6, 5], [5, 9, 4, 6, 0]]


def epoch_of(order: Sampler, epoch: int) -> npt.NDArray[np.int64]:
    """The indices of all examples that an epoch visits, in order."""
    steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
    return np.concatenate([np.asarray(order.indices(tf.constant(step))) for step in steps])


def reference_indices(order: Sampler, step: int) -> list[int]:
    """The order computed number by number, the slow way."""
    epoch, position = divmod(step, order.num_examples // order.global_batch_size)
    return [
        int(
            tf.random.experimental.index_shuffle(
                np.int64(position * order.global_batch_size + offset),
                seed=np.array([order.seed, epoch], np.int64),
                max_index=order.num_examples - 1,
            )
        )
        for offset in range(order.global_batch_size)
    ]


def test_the_order_agrees_with_the_reference() -> None:
    order = Sampler(num_examples=37, global_batch_size=8, seed=11)
    for step in (0, 3, 4, 9, 1000):
        assert np.asarray(order.indices(tf.constant(step))).tolist() == reference_indices(order, step)


def test_an_epoch_visits_no_example_twice_and_epochs_differ() -> None:
    order = Sampler(num_examples=37, global_batch_size=8, seed=11)
    epochs = [epoch_of(order, epoch) for epoch in range(3)]
    assert all(len(set(epoch)) == 32 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize(("num_examples", "block"), [(2**16 + 1, 0), (2**18 + 1, 0), (2**16 + 1 + 64 * 1025, 1025)])
def test_no_example_is_lost_where_tensorflow_loses_one(num_examples: int, block: int) -> None:
    """Of the last case, the window that is not full has 4**8 + 1 examples."""
    order = Sampler(num_examples=num_examples, global_batch_size=num_examples, seed=5, block_size=block)
    assert len(np.unique(epoch_of(order, 1))) == num_examples


def test_the_library_has_the_same_order() -> None:
    """A million numbers; where TensorFlow loses one, see above, the orders differ."""
    source, num_compared = np.random.default_rng(0), 0
    for count in (1, 2, 17, 256, 1000, 4097, 65535, 65536, 70_000, 131_073, 262_144, 10**6, 2**20, 2**33, 2**40 + 7):
        for seed in source.integers(0, 2**31, 8).tolist():
            epoch, start = int(source.integers(0, 1000)), int(source.integers(0, max(1, count - 14_000)))
            stop = min(count, start + 14_000)
            found = exact_resume_sampler.permuted(start, stop, seed, epoch, count)
            wanted = tf.random.experimental.index_shuffle(
                tf.range(start, stop, dtype=tf.int64), seed=np.array([seed, epoch], np.int64), max_index=count - 1
            )
            assert np.array_equal(found, wanted)
            num_compared += len(found)
    assert num_compared > 10**6
    ours, theirs = (kind(num_examples=1000, global_batch_size=64, seed=7) for kind in (Sampler, LibrarySampler))
    for step in (0, 14, 15, 1000):
        assert np.array_equal(ours.indices(tf.constant(step)), theirs.indices(step))


def test_a_batch_larger_than_the_split_is_refused() -> None:
    with pytest.raises(UserError, match=r"global_batch_size=38 is more than the 37 images .* use at most 37"):
        Sampler(num_examples=37, global_batch_size=38, seed=0)


@settings(deadline=None, max_examples=40)
@given(
    num_examples=st.integers(1, 300),
    block=st.integers(0, 40),
    seed=st.integers(0, 2**31 - 1),
    epoch=st.integers(0, 50),
    window=st.integers(1, 4),
)
def test_an_epoch_is_a_permutation(num_examples: int, block: int, seed: int, epoch: int, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "NUM_WINDOW_BLOCKS", window)
        order = Sampler(num_examples=num_examples, global_batch_size=num_examples, seed=seed, block_size=block)
        assert sorted(epoch_of(order, epoch)) == list(range(num_examples))


@settings(deadline=None, max_examples=10)
@given(batch=st.integers(8, 60), block=st.sampled_from([0, 1, 7, 32]), seed=st.integers(0, 1000))
def test_the_batch_size_cuts_the_same_order_differently(batch: int, block: int, seed: int) -> None:
    """The example at a position of an epoch does not depend on the batch size."""
    whole = Sampler(num_examples=200, global_batch_size=200, seed=seed, block_size=block)
    cut = Sampler(num_examples=200, global_batch_size=batch, seed=seed, block_size=block)
    assert epoch_of(cut, 3).tolist() == epoch_of(whole, 3)[: 200 // batch * batch].tolist()


@pytest.mark.parametrize("block", [0, 10])
def test_epochs_and_seeds_differ(block: int) -> None:
    seen = {
        tuple(epoch_of(Sampler(num_examples=103, global_batch_size=103, seed=seed, block_size=block), epoch))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(seen) == 4


def test_a_window_touches_few_blocks_and_mixes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is read block by block: 4 of 100 at a time, not at random positions."""
    monkeypatch.setattr(sampler, "NUM_WINDOW_BLOCKS", 4)
    order = Sampler(num_examples=1003, global_batch_size=40, seed=5, block_size=10)
    for step in range(25):
        indices = np.asarray(order.indices(tf.constant(step)))
        # A window may begin and end inside a block, because the remainder is put between two of them.
        assert len(set(indices // 10)) <= 6
        assert np.abs(np.diff(indices)).max() > 10


def test_every_example_is_seen_although_an_incomplete_batch_is_left_out() -> None:
    order = Sampler(num_examples=53, global_batch_size=25, seed=0, block_size=10)
    seen = {int(index) for epoch in range(40) for index in epoch_of(order, epoch)}
    assert seen == set(range(53))


def test_upcoming_examples_are_those_of_half_a_window_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "NUM_WINDOW_BLOCKS", 4)
    order = Sampler(num_examples=1000, global_batch_size=5, seed=5, block_size=10)
    assert np.array_equal(order.upcoming(tf.constant(3)), order.indices(tf.constant(7)))
    assert Sampler(num_examples=10, global_batch_size=5, seed=5).upcoming(tf.constant(0)).shape == (0,)


def test_blocks_follow_from_the_data_and_the_configuration_alone() -> None:
    assert block_size("default", num_examples=10**5, image_size=224) == 0
    assert block_size("default", num_examples=10**6, image_size=224) == 8 * 2**20 // 224**2
    assert block_size("whole", num_examples=10**6, image_size=224) == 0
    assert block_size("blocks", num_examples=10, image_size=8192) == 1
    assert TrainConfig(shuffle="blocks").fingerprint() != TrainConfig().fingerprint()


def balanced(counts: list[int], batch: int, seed: int = 3) -> Sampler:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts)).astype(np.int32)
    return Sampler(num_examples=len(labels), global_batch_size=batch, seed=seed, labels=labels)


@settings(deadline=None, max_examples=30)
@given(counts=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any), seed=st.integers(0, 2**31 - 1))
def test_balanced_sampling_draws_classes_and_their_examples_equally_often(counts: list[int], seed: int) -> None:
    order = balanced(counts, sum(counts), seed)
    drawn = np.concatenate([epoch_of(order, epoch) for epoch in range(4)])
    classes = np.bincount(order.labels[drawn], minlength=len(counts))
    present = classes[np.array(counts) > 0]
    assert not classes[np.array(counts) == 0].any()
    assert present.max() - present.min() <= 4
    for label, count in enumerate(counts):
        times = np.bincount(drawn, minlength=order.num_examples)[order.labels == label]
        # A class that does not get the last turn of an epoch leaves out one example.
        assert not count or times.max() - times.min() <= 5


def test_balanced_batches_follow_from_the_step_and_differ_from_epoch_to_epoch() -> None:
    order = balanced([70, 20, 10], 10)
    assert order.steps_per_epoch == 10
    again = balanced([70, 20, 10], 10)
    for step in (0, 7, 10, 1000):
        assert np.array_equal(order.indices(tf.constant(step)), again.indices(tf.constant(step)))
    assert not np.array_equal(epoch_of(order, 0), epoch_of(order, 1))


def test_balanced_sampling_of_known_numbers_keeps_its_order() -> None:
    """Another order would be another run with the same id."""
    order = balanced([7, 2, 1], 5)
    assert [np.asarray(order.indices(tf.constant(step))).tolist() for step in (0, 1, 2, 9)] == KNOWN_BALANCED
