"""Keras' `fit` with its callbacks, and with exact_resume: prints lines for `python -m benchmarks.comparison`."""

import functools
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(KERAS_BACKEND="tensorflow", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")

import keras
import numpy as np
import tensorflow as tf

import exact_resume
from benchmarks.comparison import faults
from benchmarks.comparison.faults import Notes, Tool

_SAMPLER = exact_resume.Sampler(num_examples=faults.NUM_EXAMPLES, global_batch_size=faults.BATCH_SIZE, seed=0)
_LATEST = "latest.weights.h5"


class _Batches(keras.utils.PyDataset):  # type: ignore[misc]
    """The sampler's order, from the first epoch on at each start: as data whose shuffling is seeded."""

    def __init__(self, inputs: Any, labels: Any) -> None:
        super().__init__()
        self._inputs, self._labels, self._epoch = inputs, labels, 0

    def __len__(self) -> int:
        return faults.STEPS_PER_EPOCH

    def __getitem__(self, batch: int) -> tuple[Any, Any]:
        rows = _SAMPLER.indices(self._epoch * faults.STEPS_PER_EPOCH + batch)
        return self._inputs[rows], self._labels[rows]

    def on_epoch_end(self) -> None:
        self._epoch += 1


class _Rows(keras.layers.Layer):  # type: ignore[misc]
    """Removes the first column, which has the numbers of the examples, and remembers them."""

    def __init__(self, last: Any) -> None:
        super().__init__()
        self._last = [last]

    def call(self, inputs: Any) -> Any:
        self._last[0].assign(inputs[:, 0])
        return inputs[:, 1:]


def _built(notes: Notes) -> tuple[Any, Any, Any, Any]:
    """Return the model, its inputs and labels, and a callback that notes each step."""
    # With several threads, the last bits of a sum may differ from run to run.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(0)
    images, labels = faults.digits()
    inputs = np.concatenate([np.arange(len(images), dtype=np.float32)[:, None], images], axis=1)
    last = tf.Variable(tf.zeros([faults.BATCH_SIZE]))
    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.2), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input([65]), _Rows(last), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, jit_compile=False)
    noting = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: notes.begin(model.get_weights()),
        on_train_batch_end=lambda batch, logs: notes.step(last.numpy(), model.get_weights()),
    )
    return model, inputs, labels, noting


def _train_with_callback(folder: Path, notes: Notes, *, callback: Any, loads_weights: bool = False) -> None:
    model, inputs, labels, noting = _built(notes)
    path = folder / _LATEST
    if loads_weights and path.exists():
        model.load_weights(path)
    batches = _Batches(inputs, labels)
    model.fit(batches, epochs=faults.EPOCHS, callbacks=[callback(folder), noting], shuffle=False, verbose=0)


def _backup(folder: Path, **options: Any) -> Any:
    return keras.callbacks.BackupAndRestore(str(folder), **options)


def _save_weights(folder: Path) -> Any:
    path = str(folder / _LATEST)
    return keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=faults.SAVE_EVERY)


def _train_with_exact_resume(folder: Path, notes: Notes) -> None:
    model, inputs, labels, noting = _built(notes)
    with exact_resume.keras_fit.run(
        folder,
        model=model,
        data=(inputs, labels),
        sampler=_SAMPLER,
        epochs=faults.EPOCHS,
        callbacks=[noting],
        stateless=[noting],
        code=[__file__],
        save_every_steps=faults.SAVE_EVERY,
    ) as (_, arguments):
        model.fit(**arguments, verbose=0)


def _with_callback(name: str, callback: Any, *, loads_weights: bool = False) -> Tool:
    train = functools.partial(_train_with_callback, callback=callback, loads_weights=loads_weights)
    return Tool(name=name, train=train, newest=lambda folder: folder / _LATEST)


if __name__ == "__main__":
    in_batches = functools.partial(_backup, save_freq=faults.SAVE_EVERY, double_checkpoint=True)
    sys.exit(
        faults.measure(
            [
                _with_callback("weights only", _save_weights, loads_weights=True),
                _with_callback("BackupAndRestore, per epoch", _backup),
                _with_callback("BackupAndRestore, per batches", in_batches),
                Tool(
                    name="exact_resume.keras_fit",
                    train=_train_with_exact_resume,
                    newest=lambda folder: max(folder.glob("step-*")),
                ),
            ]
        )
    )
