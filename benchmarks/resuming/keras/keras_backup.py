"""Stop a `fit` with BackupAndRestore, start it again, and count the batches and compare the weights."""

import collections
import json
import os
import tempfile

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

examples, labels = load_digits(return_X_y=True)
examples = examples.astype("float32") / 16


class Stop(keras.callbacks.Callback):
    """Counts the batches of each epoch, and raises in one of them."""

    def __init__(self, batch=None):
        super().__init__()
        self.counts, self.batch = collections.Counter(), batch

    def on_epoch_begin(self, epoch, logs=None):
        """Note the epoch."""
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        """Count, and raise in epoch 1."""
        self.counts[self.epoch] += 1
        if (self.epoch, batch) == (1, self.batch):
            raise KeyboardInterrupt


def fit(folder, callback, save_freq, *layers):
    """Train 3 epochs of 8 batches, as a new process would; return the model."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input([64]), keras.layers.Dense(16, "relu"), *layers, keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=save_freq)
    model.fit(examples, labels, 256, 3, shuffle=False, verbose=0, callbacks=[backup, callback])
    return model


cases = {}
runs = {
    'save_freq="epoch"': ("epoch", 5, []),
    'save_freq="epoch", with Dropout': ("epoch", 5, [keras.layers.Dropout]),
    "save_freq=3, stopped after 6 of 8 batches": (3, 5, []),
}
with tempfile.TemporaryDirectory() as base:
    for number, (name, (save_freq, batch, kinds)) in enumerate(runs.items()):
        layers = [kind(0.5) for kind in kinds]
        whole = fit(f"{base}/whole-{number}", Stop(), save_freq, *layers)
        first, second = Stop(batch), Stop()
        try:
            fit(f"{base}/{number}", first, save_freq, *[kind(0.5) for kind in kinds])
        except KeyboardInterrupt:
            pass
        parts = fit(f"{base}/{number}", second, save_freq, *[kind(0.5) for kind in kinds])
        gap = float(max(np.abs(a - b).max() for a, b in zip(whole.get_weights(), parts.get_weights(), strict=True)))
        total = sum((first.counts + second.counts).values())
        cases[name] = f"{total} batches are trained in place of 24" if gap and save_freq != "epoch" else gap
versions = {"keras": keras.__version__, "tensorflow": tf.__version__}
continued = "`BackupAndRestore`, `fit` again"
print(json.dumps({"library": "Keras", "versions": versions, "continued": continued, "cases": cases}))
