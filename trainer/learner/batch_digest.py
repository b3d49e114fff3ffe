"""A fingerprint of what a step trained on, computed on the device: the examples, their positions and their pixels.

For each example the augmented pixels are read as 64-bit words, multiplied by fixed odd numbers (multilinear hashing
modulo 2^64), mixed with the example's index and multiplied by its position in the global batch. The results are summed,
so the digest is the same for any number of workers.

Legend: B batch of a replica, S image size.
"""

import numpy as np
import numpy.typing as npt
import tensorflow as tf

NUM_PIECES = 4
"""A digest is exchanged as four numbers of 16 bits in float32: their sums over up to 256 replicas are exact, and they
fit into the all-reduce of loss and accuracy."""
_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed number


def pieces(images: tf.Tensor, indices: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Return this replica's part of the digest.

    Args:
        images: Augmented images, uint8 [B, S, S, 3].
        indices: Indices of the examples in their split, int64 [B].
        positions: Positions of the examples in the global batch, int64 [B].

    Returns:
        The pieces, float32 [NUM_PIECES], to be summed over the replicas.
    """
    num_bytes = images.shape[1] * images.shape[2] * images.shape[3]
    num_words = -(-num_bytes // 8)
    flat = tf.pad(tf.reshape(images, (-1, num_bytes)), ((0, 0), (0, num_words * 8 - num_bytes)))
    words = tf.bitcast(tf.reshape(flat, (-1, num_words, 8)), tf.int64)
    factors = np.random.Generator(np.random.Philox(20260822)).integers(-(2**63), 2**63, num_words, dtype=np.int64) | 1
    pixels = tf.reduce_sum(words * factors, axis=1)
    mixed = tf.bitwise.bitwise_xor(pixels, (indices + 1) * _GOLDEN) * (2 * positions + 1)
    total = tf.reduce_sum(mixed)
    shifted = tf.stack([tf.bitwise.right_shift(total, 16 * piece) for piece in range(NUM_PIECES)])
    return tf.cast(tf.bitwise.bitwise_and(shifted, 0xFFFF), tf.float32)


def join(summed: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return digests, uint64 [steps], from their pieces, float32 [steps, NUM_PIECES] summed over all replicas."""
    digests = np.zeros(len(summed), np.uint64)
    for piece in range(NUM_PIECES):
        digests += summed[:, piece].astype(np.uint64) << np.uint64(16 * piece)
    return digests
