"""Batch normalisation as one operation while training: Keras 3 makes it of a dozen that each read all the pixels.

The same mathematics as `keras.layers.BatchNormalization`, in another order of the sums; `benchmarks/train.py` shows
what it brings on a CPU. On a GPU it is cuDNN's, which is deterministic when asked to be.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

SMALLEST_EPSILON = 1.001e-5
"""cuDNN takes no smaller one (CUDNN_BN_MIN_EPSILON)."""


class FusedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
    """Normalises float [B, H, W, C] over all but C."""

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the inputs normalised by the batch's own statistics, and keep the moving averages of these."""
        if not (training and self.trainable) or mask is not None or not _is_for_images(self, inputs):
            return super().call(inputs, training=training, mask=mask)
        channels = inputs.shape[-1]
        nothing = tf.zeros([0])
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=tf.cast(self.gamma, tf.float32) if self.scale else tf.ones([channels]),
            offset=tf.cast(self.beta, tf.float32) if self.center else tf.zeros([channels]),
            mean=nothing, variance=nothing, epsilon=self.epsilon, is_training=True,
        )  # fmt: skip
        # The operation gives the unbiased estimate, Keras 3 keeps the variance of the batch itself.
        count = tf.cast(tf.size(inputs, out_type=tf.int64) // channels, tf.float32)
        variance *= (count - 1.0) / count
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average.assign(average * self.momentum + value * (1.0 - self.momentum))
        return outputs


def _is_for_images(layer: keras.layers.BatchNormalization, inputs: Any) -> bool:
    return len(inputs.shape) == 4 and layer.axis in (-1, 3) and inputs.dtype.name in ("float32", "float16", "bfloat16")


def fuse(model: keras.Model) -> None:
    """Let the batch normalisations of a model, also those inside its layers, be fused while training.

    Layers of other classes derived from Keras', synchronised and renormalising ones, and those that keep their averages
    in 16 bits stay as they are.
    """
    for layer in model._flatten_layers():
        is_plain = type(layer) is keras.layers.BatchNormalization and not layer.synchronized and not layer.renorm
        if is_plain and layer.epsilon >= SMALLEST_EPSILON and layer.variable_dtype == "float32":
            # Not a copy of the model: weights, names and connections stay those of the user's own layers.
            object.__setattr__(layer, "__class__", FusedBatchNormalization)
