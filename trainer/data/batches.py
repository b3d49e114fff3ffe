"""The batches of training and evaluation: pure functions of (seed, step), so there is no state to save.

Legend: G global batch, B batch of this replica or worker, N examples of the split, S image size, K classes.
"""

import dataclasses

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.data.augmentation.layers import Augmentation
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
    """The part of each global batch that one input pipeline makes: one pipeline per worker, for its replicas."""

    pipeline: int = 0
    num_pipelines: int = 1
    replicas_per_pipeline: int = 1

    @property
    def num_replicas(self) -> int:
        """Replicas of all pipelines together."""
        return self.num_pipelines * self.replicas_per_pipeline

    def batch_and_replica(self, element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the number of the global batch and the replica that an element of the pipeline is for."""
        replica = self.pipeline * self.replicas_per_pipeline + element % self.replicas_per_pipeline
        return element // self.replicas_per_pipeline, replica


_WHOLE, _UNCHANGED = Shard(), Augmentation()


def training_batches(
    examples: Examples,
    sampler: Sampler,
    augmentation: Augmentation = _UNCHANGED,
    *,
    start_step: int,
    stop_step: int,
    shard: Shard = _WHOLE,
) -> tf.data.Dataset:
    """Make the batches of the steps from `start_step` to `stop_step`, the latter excluded.

    Args:
        examples: The training split.
        sampler: Decides which examples each step trains on.
        augmentation: Changes the images; by default it does not.
        start_step: First step; nothing before it is computed.
        stop_step: Step after the last one.
        shard: This pipeline's part; by default everything. The G examples of a step are dealt out in order, as evenly
            as G allows.

    Returns:
        A dataset with one element per step and replica of the shard: (images uint8 [B, S, S, 3], labels int32 [B], or
            float32 [B, K] if images are mixed, random numbers float32 [B, NUM_RANDOM_NUMBERS], indices int64 [B] in the
            split, positions int64 [B] in the global batch).
    """
    size, num_replicas, group = sampler.global_batch_size, shard.num_replicas, augmentation.group_size
    # One shape for all batches where possible, because XLA compiles again for each shape.
    batch_size = size // num_replicas if size % num_replicas == 0 else None

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def batch(element: tf.Tensor) -> tuple[tf.Tensor, ...]:
        step, replica = shard.batch_and_replica(element)
        start, stop = replica * size // num_replicas, (replica + 1) * size // num_replicas
        # Whole groups, even where this part begins or ends inside one; the last example may be its own partner.
        positions = tf.minimum(tf.range(start - start % group, stop + -stop % group), size - 1)
        indices = tf.gather(sampler.indices(step), positions)
        random_numbers = tf.gather(sampler.random_numbers(step), positions)
        images, labels = examples.gather(indices, random_numbers, sampler.upcoming(step))
        images, labels = augmentation(images, labels, random_numbers)
        parts = (images, labels, random_numbers, indices, positions)
        own = slice(start % group, start % group + stop - start)
        return tuple(tf.ensure_shape(part[own], (batch_size, *part.shape[1:])) for part in parts)

    per_step = shard.replicas_per_pipeline
    elements = tf.data.Dataset.range(start_step * per_step, stop_step * per_step)
    options = tf.data.Options()
    options.deterministic = True
    return elements.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE).with_options(options)


def evaluation_rounds(examples: Examples, batch_size: int, num_replicas: int) -> int:
    """Return the number of rounds of an evaluation; in a round each replica gets one batch."""
    return -(-examples.num_examples // (batch_size * num_replicas))


def evaluation_batches(examples: Examples, batch_size: int, shard: Shard = _WHOLE) -> tf.data.Dataset:
    """Make batches of all examples, each once, in the stored order.

    Batches are filled up with the first example at weight 0.

    Returns:
        A dataset of (images uint8 [B, S, S, 3], labels int32 [B], weights float32 [B]), one in a round for
            each replica of the shard.
    """
    count, num_rounds = examples.num_examples, evaluation_rounds(examples, batch_size, shard.num_replicas)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def batch(element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        number, replica = shard.batch_and_replica(element)
        start = (number * shard.num_replicas + replica) * batch_size
        indices = start + tf.range(batch_size, dtype=tf.int64)
        inside = indices < count
        images, labels = examples.gather(tf.where(inside, indices, 0))
        return images, labels, tf.cast(inside, tf.float32)

    elements = tf.data.Dataset.range(num_rounds * shard.replicas_per_pipeline)
    return elements.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def predict(model: keras.Model, examples: Examples, batch_size: int = 256) -> npt.NDArray[np.float32]:
    """Return the probabilities float32 [N, K] of all examples, in the stored order."""
    call = tf.function(lambda images: model(images, training=False), autograph=False)
    batches = evaluation_batches(examples, min(batch_size, max(1, examples.num_examples)))
    return np.concatenate([call(images).numpy() for images, _, _ in batches])[: examples.num_examples]
