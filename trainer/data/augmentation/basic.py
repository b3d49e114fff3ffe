"""Random changes of training images: a pure function of the image and the random numbers of its example.

Legend: B batch, S image size, R = trainer.data.sampler.NUM_RANDOM_NUMBERS.
"""

import math
from collections.abc import Callable

import tensorflow as tf

_Augmentation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""(images uint8 [B, S, S, 3], random numbers float32 [B, R] in [0, 1)) -> images uint8 [B, S, S, 3]."""
_MAX_SHIFT_FRACTION = 1 / 8
"""Largest shift as a fraction of the edge."""
_MIN_CROP_AREA = 0.08
"""Smallest area of a crop as a fraction of the image, as in arXiv:1409.4842."""
_MAX_CROP_RATIO = 4 / 3
"""Largest ratio of a crop's sides, width to height or height to width."""


def _shift(images: tf.Tensor, random_numbers: tf.Tensor) -> tf.Tensor:
    """Move each image by up to an eighth of its edge and repeat the border's pixels in the gap."""
    size = images.shape[1]
    reach = max(1, int(size * _MAX_SHIFT_FRACTION))
    # Gathers with clipped indices: one operation for the whole batch, without a loop and without padding.
    offsets = tf.cast(tf.floor(random_numbers[:, :2] * (2 * reach + 1)), tf.int32) - reach
    rows = tf.clip_by_value(tf.range(size)[None, :] + offsets[:, :1], 0, size - 1)
    columns = tf.clip_by_value(tf.range(size)[None, :] + offsets[:, 1:], 0, size - 1)
    moved = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(moved, columns, axis=2, batch_dims=1)


def _flip(images: tf.Tensor, random_numbers: tf.Tensor) -> tf.Tensor:
    """Mirror each image left to right with probability one half."""
    mirror = (random_numbers[:, 2] < 0.5)[:, None, None, None]
    return tf.where(mirror, images[:, :, ::-1], images)


AUGMENTATIONS: dict[str, _Augmentation] = {
    "none": lambda images, _: images,
    "shift": _shift,
    "flip-and-shift": lambda images, random_numbers: _shift(_flip(images, random_numbers), random_numbers),
    # The crop is cut where images are decoded (trainer.data.examples).
    "crop-and-flip": _flip,
}
"""Augmentation of a batch of decoded images on the device, by the value of `augment`."""


def crop_boxes(random_numbers: tf.Tensor, image_size: int) -> tf.Tensor:
    """Return random crops int32 [B, 4] (top, left, height, width in pixels).

    Args:
        random_numbers: Values float32 [B, R] in [0, 1); the last four of each row are used.
        image_size: S.
    """
    area = image_size * image_size * (_MIN_CROP_AREA + (1 - _MIN_CROP_AREA) * random_numbers[:, 3])
    ratio = tf.exp((2 * random_numbers[:, 4] - 1) * math.log(_MAX_CROP_RATIO))
    sides = tf.stack([tf.sqrt(area / ratio), tf.sqrt(area * ratio)], axis=1)
    sides = tf.clip_by_value(tf.cast(tf.round(sides), tf.int32), 1, image_size)
    corners = tf.floor(random_numbers[:, 5:7] * tf.cast(image_size - sides + 1, tf.float32))
    return tf.concat([tf.cast(corners, tf.int32), sides], axis=1)


def enlarge(crop: tf.Tensor, image_size: int) -> tf.Tensor:
    """Resize a crop uint8 [height, width, 3] to an image uint8 [S, S, 3]."""
    return tf.cast(tf.round(tf.image.resize(crop, (image_size, image_size))), tf.uint8)
