"""The two baselines: what a Keras user writes in thirty lines, and what a careful one adds for imbalanced images.

Both train the trainer's own network on the same pixels, splits, batch size and number of epochs, and keep the weights
with the best accuracy on the validation split.

Legend: N examples, S image size.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

_Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]
"""Images uint8 [N, S, S, 3] and labels int32 [N]."""


def fit(model: keras.Model, train: _Arrays, validation: _Arrays, *, epochs: int, batch_size: int) -> None:
    """Train with Adam, as the examples in Keras' documentation do."""
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    images, labels = train
    _fit(model, images, labels, batch_size=batch_size, epochs=epochs, validation_data=validation)


def careful_fit(model: keras.Model, train: _Arrays, validation: _Arrays, *, epochs: int, batch_size: int) -> None:
    """Train with class weights, RandAugment, AdamW and cosine decay after a warm-up of a twentieth of the steps."""
    images, labels = train
    num_steps = epochs * -(-len(labels) // batch_size)
    num_warmup_steps = num_steps // 20
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, num_steps - num_warmup_steps, warmup_target=0.001, warmup_steps=num_warmup_steps
    )
    model.compile(keras.optimizers.AdamW(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    augment = keras.layers.RandAugment(value_range=(0, 255))
    batches = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(len(labels))
        .batch(batch_size)
        .map(lambda batch, truth: (tf.cast(augment(batch), tf.uint8), truth), num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    counts = np.bincount(labels)
    weights = {label: len(labels) / (len(counts) * count) for label, count in enumerate(counts) if count}
    _fit(model, batches, epochs=epochs, class_weight=weights, validation_data=validation)


def _fit(model: keras.Model, *data: Any, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        best = Path(folder) / "best.weights.h5"
        kept = keras.callbacks.ModelCheckpoint(
            best, monitor="val_accuracy", save_best_only=True, save_weights_only=True
        )
        model.fit(*data, **options, callbacks=[kept], verbose=0)
        model.load_weights(best)


RECIPES: dict[str, Callable[..., None]] = {"fit": fit, "careful-fit": careful_fit}
