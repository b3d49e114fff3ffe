"""Random changes of training images, on the device, from random numbers that the input pipeline hands over.

Legend: B batch, S image size, D = trainer.data.sampler.NUM_DRAWS.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

Augmentation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""(images uint8 [B, S, S, 3], draws float32 [B, D] in [0, 1)) -> images uint8 [B, S, S, 3]."""
MAX_SHIFT_FRACTION = 1 / 8
"""Largest shift as a share of the edge."""


def unchanged(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """No change."""
    del draws
    return images


def shift(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Move each image by up to an eighth of its edge; the border's pixels fill what becomes free."""
    size = images.shape[1]
    reach = max(1, int(size * MAX_SHIFT_FRACTION))
    # Gathers with clipped indices: one operation for the whole batch, no loop over images, no padding to copy.
    offsets = tf.cast(tf.floor(draws[:, :2] * (2 * reach + 1)), tf.int32) - reach
    rows = tf.clip_by_value(tf.range(size)[None, :] + offsets[:, :1], 0, size - 1)
    columns = tf.clip_by_value(tf.range(size)[None, :] + offsets[:, 1:], 0, size - 1)
    moved = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(moved, columns, axis=2, batch_dims=1)


def flip(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Mirror each image left to right in half of the cases."""
    mirror = (draws[:, 2] < 0.5)[:, None, None, None]
    return tf.where(mirror, images[:, :, ::-1], images)


def flip_and_shift(images: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Mirror each image left to right in half of the cases, then shift."""
    return shift(flip(images, draws), draws)


AUGMENTATIONS: dict[str, Augmentation] = {
    "none": unchanged,
    "shift": shift,
    "flip-and-shift": flip_and_shift,
    # The crop is made while images are decoded (trainer.data.crops): what it leaves out need not be decoded.
    "crop-and-flip": flip,
}
