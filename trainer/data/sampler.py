"""Which examples a step trains on, and their random numbers: pure functions of (seed, step).

Legend: G global batch, N examples of the split.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.splits import check_batch_size

NUM_RANDOM_NUMBERS = 7
"""Random numbers of an example: shift down, shift right, mirror; area, shape, top and left of a crop."""
_WHOLE_SHUFFLE_BYTES = 32 * 2**30
"""Splits up to about this size are shuffled whole, larger ones by blocks, unless the configuration decides."""
_BLOCK_BYTES = 8 * 2**20
"""Size of one read from the disk: large enough that seeking does not matter."""
NUM_WINDOW_BLOCKS = 64
"""Blocks that are shuffled together: about 512 MiB, of which two are in memory at a time."""
# These keep the random numbers independent of each other and of a whole shuffle, which uses the seed unchanged.
_RANDOM_NUMBERS_STREAM, _WINDOW_STREAM, _BLOCK_STREAM, _REST_STREAM = 0x5EED, 0x1A2B3C, 0x2B3C4D, 0x3C4D5E


def block_size(shuffle: str, *, num_examples: int, image_size: int) -> int:
    """Return the number of examples in a block; 0: the split is shuffled whole.

    It depends on the data alone, never on the machine: a run that resumes with less memory must see the same order.

    Args:
        shuffle: `whole`, `blocks` or `default`, as in the configuration.
        num_examples: N of the training split.
        image_size: Height and width in pixels; a stored image takes about one byte per pixel.
    """
    stored = image_size * image_size
    if shuffle == "whole" or (shuffle == "default" and num_examples * stored <= _WHOLE_SHUFFLE_BYTES):
        return 0
    return max(1, _BLOCK_BYTES // stored)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
    """The order of the training examples: a permutation per epoch, without the examples that fill no whole batch."""

    num_examples: int
    """N of the training split."""
    global_batch_size: int
    """G."""
    seed: int
    block_size: int = 0
    """Neighbouring examples that are read together; 0: every permutation of the whole split is possible."""
    labels: Any = dataclasses.field(default=None, compare=False)
    """Labels int32 [N] to draw each class equally often, each example of a class too; None: each example once."""

    def __post_init__(self) -> None:
        check_batch_size(self.global_batch_size, self.num_examples)

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole batches in an epoch."""
        return self.num_examples // self.global_batch_size

    def indices(self, step: tf.Tensor) -> tf.Tensor:
        """Return the indices int64 [G] of a step's examples (the first step is 0), for any number of workers."""
        step = tf.cast(step, tf.int64)
        epoch = step // self.steps_per_epoch
        positions = (step % self.steps_per_epoch) * self.global_batch_size + tf.range(
            self.global_batch_size, dtype=tf.int64
        )
        if self.labels is not None:
            return self._balanced(_shuffle(positions, self.seed, epoch, self.num_examples), epoch)
        if not 0 < self.block_size < self.num_examples:
            return _shuffle(positions, self.seed, epoch, self.num_examples)
        return self._from_blocks(self._within_windows(positions, epoch), epoch)

    def upcoming(self, step: tf.Tensor) -> tf.Tensor:
        """Return the indices int64 [G] to read ahead, half a window later; [0] where the split is shuffled whole."""
        if not self.block_size:
            return tf.zeros([0], tf.int64)
        ahead = max(1, self.block_size * NUM_WINDOW_BLOCKS // (2 * self.global_batch_size))
        return self.indices(tf.cast(step, tf.int64) + ahead)

    def random_numbers(self, step: tf.Tensor) -> tf.Tensor:
        """Return float32 [G, NUM_RANDOM_NUMBERS] in [0, 1) for the augmentation of a step's examples."""
        seed = tf.stack([tf.constant(self.seed ^ _RANDOM_NUMBERS_STREAM, tf.int64), tf.cast(step, tf.int64)])
        return tf.random.stateless_uniform([self.global_batch_size, NUM_RANDOM_NUMBERS], seed=seed)

    def _balanced(self, turns: tf.Tensor, epoch: tf.Tensor) -> tf.Tensor:
        """Return the examples that the classes give at the turns int64 [G] (0 to N - 1) of an epoch.

        The classes take turns, and each gives its examples one after the other, even from epoch to epoch. As the turns
        are shuffled, so are the classes and the examples.
        """
        order = np.argsort(self.labels, kind="stable")
        _, starts, counts = np.unique(np.take(self.labels, order), return_index=True, return_counts=True)
        drawn, turn = turns % len(counts), turns // len(counts) + epoch * -(-self.num_examples // len(counts))
        return tf.gather(order, tf.gather(starts, drawn) + turn % tf.gather(counts, drawn))

    def _within_windows(self, positions: tf.Tensor, epoch: tf.Tensor) -> tf.Tensor:
        """Shuffle the positions of an epoch within windows of NUM_WINDOW_BLOCKS blocks."""
        window_size = self.block_size * NUM_WINDOW_BLOCKS
        window = positions // window_size
        start = window * window_size
        num_windows = -(-self.num_examples // window_size)
        stream = tf.fill(tf.shape(window), tf.constant(self.seed ^ _WINDOW_STREAM, tf.int64))
        # The raw operation, because tf.random.experimental.index_shuffle fails with one seed per index.
        seeds = tf.stack([stream, epoch * num_windows + window, tf.zeros_like(window)], axis=1)
        sizes = tf.minimum(tf.constant(window_size, tf.int64), self.num_examples - start)

        def shuffle(numbers: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
            return tf.raw_ops.RandomIndexShuffle(index=numbers, seed=seeds, max_index=last, rounds=4)

        return start + _complete(shuffle, positions - start, sizes, self.num_examples % window_size)

    def _from_blocks(self, positions: tf.Tensor, epoch: tf.Tensor) -> tf.Tensor:
        """Return the examples at positions of an epoch that visits the blocks in random order.

        The remainder that fills no block is put between two blocks, at another place in each epoch: always at the
        end, it would be left out again and again.
        """
        num_blocks, rest = divmod(self.num_examples, self.block_size)
        rest_start = self.block_size * _shuffle(0, self.seed ^ _REST_STREAM, epoch, num_blocks + 1)
        in_rest = (positions >= rest_start) & (positions < rest_start + rest)
        packed = tf.where(positions < rest_start, positions, positions - rest)
        block = tf.clip_by_value(packed // self.block_size, 0, num_blocks - 1)
        block = _shuffle(block, self.seed ^ _BLOCK_STREAM, epoch, num_blocks)
        in_block = block * self.block_size + packed % self.block_size
        return tf.where(in_rest, num_blocks * self.block_size + positions - rest_start, in_block)


def _shuffle(index: tf.Tensor | int, seed: int, epoch: tf.Tensor, count: int) -> tf.Tensor:
    """Return where a permutation of `count` numbers puts an index."""
    seeds = tf.stack([tf.constant(seed, tf.int64), epoch])

    def shuffle(numbers: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        return tf.random.experimental.index_shuffle(numbers, seed=seeds, max_index=last)

    return _complete(shuffle, tf.cast(index, tf.int64), tf.constant(count, tf.int64), count)


def _complete(
    shuffle: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], numbers: tf.Tensor, sizes: tf.Tensor, short: int
) -> tf.Tensor:
    """Return where permutations of `sizes` numbers put some numbers, of which `short` may be a wrong size.

    Where the largest number is a power of 4 from 2**16 on, TensorFlow 2.21 has one bit too few: one number is there
    twice, and another never. There it permutes one number more, and the number that gets this place is moved again.
    """
    if short not in {4**power + 1 for power in range(8, 31)}:
        return shuffle(numbers, sizes - 1)
    longest = tf.where(sizes == short, sizes, sizes - 1)
    found = shuffle(numbers, longest)
    return tf.where(found < sizes, found, shuffle(found, longest))
