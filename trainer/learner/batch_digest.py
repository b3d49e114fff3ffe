"""A fingerprint of what a step trained on, computed on the device: which examples, at which place, with which pixels.

Per example the pixels after the random changes are read as 64-bit words and multiplied with fixed odd numbers
(multilinear hashing modulo 2^64); mixed with the example's index, multiplied with its place in the global batch, and
added up. A sum does not depend on how the batch was dealt out to replicas: one digest, any number of workers.

Legend: B batch of a replica, S image size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

NUM_PIECES = 4
"""A digest travels as four numbers of 16 bits in float32: their sums over up to 256 replicas are exact, and the
all-reduce that carries loss and accuracy carries them, too."""
_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed number


def pieces(images: tf.Tensor, indices: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """This replica's share of the digest.

    Args:
        images: uint8 [B, S, S, 3], after the random changes.
        indices: int64 [B], of the examples in their split.
        places: int64 [B], of the examples in the global batch.

    Returns:
        float32 [NUM_PIECES], to be added up over the replicas.
    """
    num_bytes = images.shape[1] * images.shape[2] * images.shape[3]
    num_words = -(-num_bytes // 8)
    flat = tf.pad(tf.reshape(images, (-1, num_bytes)), ((0, 0), (0, num_words * 8 - num_bytes)))
    words = tf.bitcast(tf.reshape(flat, (-1, num_words, 8)), tf.int64)
    factors = np.random.Generator(np.random.Philox(20260822)).integers(-(2**63), 2**63, num_words, dtype=np.int64) | 1
    pixels = tf.reduce_sum(words * factors, axis=1)
    mixed = tf.bitwise.bitwise_xor(pixels, (indices + 1) * _GOLDEN) * (2 * places + 1)
    total = tf.reduce_sum(mixed)
    shifted = tf.stack([tf.bitwise.right_shift(total, 16 * piece) for piece in range(NUM_PIECES)])
    return tf.cast(tf.bitwise.bitwise_and(shifted, 0xFFFF), tf.float32)


def join(summed: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Digests uint64 [steps] from the pieces float32 [steps, NUM_PIECES] summed over all replicas."""
    digests = np.zeros(len(summed), np.uint64)
    for piece in range(NUM_PIECES):
        digests += summed[:, piece].astype(np.uint64) << np.uint64(16 * piece)
    return digests


def to_text(digests: Sequence[np.uint64] | npt.NDArray[np.uint64]) -> list[str]:
    """16 hexadecimal digits a step."""
    return [f"{int(digest):016x}" for digest in digests]
