"""Which examples a step sees, and their random changes: pure functions of (seed, step), so there is nothing to save.

Legend: G global batch, B batch of this replica or worker, N examples of the split, S image size.
"""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.dataset import Dataset
from trainer.errors import UserError
from trainer.images import encoding_format

NUM_DRAWS = 3
"""Random numbers an example gets for its changes: shift down, shift right, mirror."""
MAX_DECODED_BYTES = 2 * 2**30
"""A split is held as pixels up to this size, above it as the encoded records."""
_DRAWS_STREAM = 0x5EED
"""Keeps the random changes independent of the order of examples, which uses the same seed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Examples:
    """One split in memory."""

    images: tf.Tensor
    """uint8 [N, S, S, 3], or string [N] where the pixels would take too much memory."""
    labels: tf.Tensor
    """int32 [N]."""
    image_size: int

    @property
    def num_examples(self) -> int:
        """N."""
        return int(self.labels.shape[0])

    @property
    def num_bytes(self) -> int:
        """Memory that the images take."""
        if self.images.dtype == tf.string:
            return int(tf.reduce_sum(tf.strings.length(self.images)))
        return self.num_examples * self.image_size * self.image_size * 3

    def gather(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Images uint8 [B, S, S, 3] and labels int32 [B] at indices int64 [B]."""
        images = tf.gather(self.images, indices)
        if images.dtype == tf.string:
            images = tf.map_fn(self._decode, images, fn_output_signature=tf.uint8)
        shape = (*indices.shape, self.image_size, self.image_size, 3)
        return tf.ensure_shape(images, shape), tf.gather(self.labels, indices)

    def _decode(self, data: tf.Tensor) -> tf.Tensor:
        if encoding_format(self.image_size) == "png":
            return tf.io.decode_png(data, channels=3)
        # Accurate: the same pixels as Pillow gives, so training, evaluation and reports see one image.
        return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")


def load_split(dataset: Dataset, split: str) -> Examples:
    """Read a split into memory.

    Raises:
        UserError: a shard is missing.
    """
    size = dataset.image_size
    count = dataset.num_examples[split]
    labels = np.zeros(count, np.int32)
    if count * size * size * 3 <= MAX_DECODED_BYTES:
        pixels = np.zeros((count, size, size, 3), np.uint8)
        for index, record in enumerate(dataset.records(split)):
            pixels[index], labels[index] = record.pixels(), record.label
        images = tf.constant(pixels)
    else:
        encoded = []
        for index, record in enumerate(dataset.records(split)):
            encoded.append(record.image_bytes)
            labels[index] = record.label
        images = tf.constant(encoded)
    return Examples(images=images, labels=tf.constant(labels), image_size=size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """The order of the training examples: each epoch a permutation, the rest below a whole batch left out."""

    num_examples: int
    """N of the training split."""
    global_batch_size: int
    """G."""
    seed: int

    def __post_init__(self) -> None:
        if self.global_batch_size > self.num_examples:
            raise UserError(
                f"global_batch_size={self.global_batch_size} is more than the {self.num_examples} images of the"
                f" training split; give at most {self.num_examples}"
            )

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return self.num_examples // self.global_batch_size

    def indices(self, step: tf.Tensor) -> tf.Tensor:
        """Indices int64 [G] of the examples of a step (0 is the first), for any number of workers."""
        step = tf.cast(step, tf.int64)
        epoch = step // self.steps_per_epoch
        positions = (step % self.steps_per_epoch) * self.global_batch_size + tf.range(
            self.global_batch_size, dtype=tf.int64
        )
        seed = tf.stack([tf.constant(self.seed, tf.int64), epoch])
        return tf.random.experimental.index_shuffle(positions, seed=seed, max_index=self.num_examples - 1)

    def draws(self, step: tf.Tensor) -> tf.Tensor:
        """Random numbers float32 [G, NUM_DRAWS] in [0, 1) for the changes of a step's examples."""
        seed = tf.stack([tf.constant(self.seed ^ _DRAWS_STREAM, tf.int64), tf.cast(step, tf.int64)])
        return tf.random.stateless_uniform([self.global_batch_size, NUM_DRAWS], seed=seed)


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
        images, labels = examples.gather(indices)
        return images, labels, tf.gather(order.draws(step), places), indices, places

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
