"""The batches of training and of evaluation: pure functions of (seed, step), so there is nothing to save.

Legend: G global batch, B batch of this replica or worker, N examples of the split, S image size.
"""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.data.examples import Examples
from trainer.data.sampler import Order


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """Which part of each global batch an input pipeline makes: one pipeline a worker, for its replicas."""

    pipeline: int = 0
    num_pipelines: int = 1
    replicas_per_pipeline: int = 1

    @property
    def num_replicas(self) -> int:
        """Of all pipelines together."""
        return self.num_pipelines * self.replicas_per_pipeline

    def turn(self, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The global batch and the replica that the pipeline's element of a number is for; its replicas take turns."""
        replica = self.pipeline * self.replicas_per_pipeline + number % self.replicas_per_pipeline
        return number // self.replicas_per_pipeline, replica


def training_batches(
    examples: Examples, order: Order, *, start_step: int, stop_step: int, share: Share | None = None
) -> tf.data.Dataset:
    """Batches from `start_step` up to but without `stop_step`.

    Args:
        examples: the training split.
        order: decides which are in which step.
        start_step: first step; any number, nothing before it is computed.
        stop_step: end.
        share: the part of this pipeline; all of it if not given. The G examples of a step are dealt out in order, as
            evenly as G allows.

    Returns:
        A dataset with an element for each step and replica of the share: (images uint8 [B, S, S, 3], labels int32 [B],
        draws float32 [B, NUM_DRAWS], indices int64 [B] in the split, places int64 [B] in the global batch).
    """
    mine = share or Share()
    size, num_replicas = order.global_batch_size, mine.num_replicas
    # One shape for all where that is possible: XLA compiles for each shape anew.
    batch_size = size // num_replicas if size % num_replicas == 0 else None

    def batch(number: tf.Tensor) -> tuple[tf.Tensor, ...]:
        step, replica = mine.turn(number)
        places = tf.range(replica * size // num_replicas, (replica + 1) * size // num_replicas)
        places = tf.ensure_shape(places, (batch_size,))
        indices = tf.gather(order.indices(step), places)
        draws = tf.gather(order.draws(step), places)
        images, labels = examples.gather(indices, draws, order.upcoming(step))
        return images, labels, draws, indices, places

    turns = mine.replicas_per_pipeline
    numbers = tf.data.Dataset.range(start_step * turns, stop_step * turns)
    options = tf.data.Options()
    options.deterministic = True
    return numbers.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE).with_options(options)


def evaluation_batches(examples: Examples, batch_size: int, share: Share | None = None) -> tuple[tf.data.Dataset, int]:
    """All examples once, in the stored order; batches are filled up with the first example at weight 0.

    Returns:
        A dataset of (images uint8 [B, S, S, 3], labels int32 [B], weights float32 [B]), and its number of rounds: in a
        round each replica of the share gets one element.
    """
    mine = share or Share()
    count = examples.num_examples
    num_rounds = -(-count // (batch_size * mine.num_replicas))

    def batch(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        turn, replica = mine.turn(number)
        start = (turn * mine.num_replicas + replica) * batch_size
        positions = start + tf.range(batch_size, dtype=tf.int64)
        inside = positions < count
        images, labels = examples.gather(tf.where(inside, positions, 0))
        return images, labels, tf.cast(inside, tf.float32)

    numbers = tf.data.Dataset.range(num_rounds * mine.replicas_per_pipeline)
    return numbers.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2), num_rounds


def predict(model: keras.Model, examples: Examples, batch_size: int = 256) -> npt.NDArray[np.float32]:
    """Probabilities float32 [N, K] of all examples, in the stored order."""
    call = tf.function(lambda images: model(images, training=False))
    batches, _ = evaluation_batches(examples, min(batch_size, max(1, examples.num_examples)))
    return np.concatenate([call(images).numpy() for images, _, _ in batches])[: examples.num_examples]
