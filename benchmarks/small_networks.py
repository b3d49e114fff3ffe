"""The small networks of the two-worker comparison, for Keras 3 and tf-keras alike: one definition, two libraries."""

from __future__ import annotations

import importlib
from typing import Any


def build(*, image_size: int, num_classes: int, weights: str) -> Any:
    """Convnet without its batch normalisation, as `--model small_networks:build`."""
    del weights
    return convolutions("keras", image_size, num_classes, normalized=False)


def convolutions(library: str, image_size: int, num_classes: int, *, normalized: bool) -> Any:
    """The layers of trainer.models.convnet.

    Args:
        library: keras or tf_keras.
        image_size: S, height and width in pixels.
        num_classes: K.
        normalized: whether batch normalisation follows each convolution.

    Returns:
        A model of the library, uint8 [B, S, S, 3] -> float32 [B, K].
    """
    keras = importlib.import_module(library)
    layers = keras.layers
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = layers.Rescaling(1 / 127.5, offset=-1.0)(images)
    for filters in (16, 32, 64):
        hidden = layers.Conv2D(filters, 3, padding="same", use_bias=not normalized)(hidden)
        if normalized:
            hidden = layers.BatchNormalization(momentum=0.9)(hidden)
        hidden = layers.MaxPooling2D(2)(layers.ReLU()(hidden))
    hidden = layers.Dropout(0.3)(layers.Flatten()(hidden))
    return keras.Model(images, layers.Softmax(dtype="float32")(layers.Dense(num_classes)(hidden)))
