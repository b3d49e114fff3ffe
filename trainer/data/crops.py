"""Random resized crops, as ImageNet recipes train with (arXiv:1409.4842): a part of the image, enlarged to all of it.

Legend: B batch, S image size.
"""

from __future__ import annotations

import math

import tensorflow as tf

SMALLEST_AREA = 0.08
"""Of a crop, as a share of the image."""
LARGEST_RATIO = 4 / 3
"""Of a crop's width to its height, or of height to width."""


def boxes(draws: tf.Tensor, image_size: int) -> tf.Tensor:
    """Crops int32 [B, 4] (top, left, height, width) from random numbers float32 [B, NUM_DRAWS]: the last four."""
    area = image_size * image_size * (SMALLEST_AREA + (1 - SMALLEST_AREA) * draws[:, 3])
    ratio = tf.exp((2 * draws[:, 4] - 1) * math.log(LARGEST_RATIO))
    sides = tf.stack([tf.sqrt(area / ratio), tf.sqrt(area * ratio)], axis=1)
    sides = tf.clip_by_value(tf.cast(tf.round(sides), tf.int32), 1, image_size)
    corners = tf.floor(draws[:, 5:7] * tf.cast(image_size - sides + 1, tf.float32))
    return tf.concat([tf.cast(corners, tf.int32), sides], axis=1)


def enlarge(part: tf.Tensor, image_size: int) -> tf.Tensor:
    """A crop uint8 [height, width, 3] as an image uint8 [S, S, 3]."""
    return tf.cast(tf.round(tf.image.resize(part, (image_size, image_size))), tf.uint8)
