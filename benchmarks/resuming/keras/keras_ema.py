"""Train a model of Keras with `use_ema` in one `fit`, and in two."""

import json
import os

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

examples, labels = load_digits(return_X_y=True)
examples = examples.astype("float32") / 16


def build(**options):
    """Return a compiled model whose weights follow from a seed."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input([64]), keras.layers.Dense(16, "relu"), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01, **options), loss)
    return model


def train(model, epochs, **options):
    """Train on the same batches in each epoch."""
    model.fit(examples, labels, 256, epochs, shuffle=False, verbose=0, **options)


def gap(one, other):
    """Return the largest difference of a weight."""
    return float(max(np.abs(a - b).max() for a, b in zip(one.get_weights(), other.get_weights(), strict=True)))


class Raw(keras.callbacks.Callback):
    """Keeps the weights of the last batch, before `fit` ends."""

    def on_train_batch_end(self, batch, logs=None):
        """Copy them."""
        self.weights = self.model.get_weights()


cases = {}
for name, options in {"without use_ema": {}, "use_ema": {"use_ema": True, "ema_momentum": 0.9}}.items():
    whole, parts = build(**options), build(**options)
    train(whole, 4)
    train(parts, 2)
    train(parts, 2)
    cases[name] = gap(whole, parts)
raw, model = Raw(), build(use_ema=True, ema_momentum=0.9)
train(model, 2, callbacks=[raw])
averages = [each.numpy() for each in model.optimizer._model_variables_moving_average]
is_average = all(np.array_equal(a, b) for a, b in zip(model.get_weights(), averages, strict=True))
is_raw = all(np.array_equal(a, b) for a, b in zip(model.get_weights(), raw.weights, strict=True))
cases["the weights after `fit` with use_ema"] = (
    "are the averages; the trained ones are lost" if is_average and not is_raw else "are the trained ones"
)
versions = {"keras": keras.__version__, "tensorflow": tf.__version__}
continued = "`fit` for 2 epochs, and again"
print(json.dumps({"library": "Keras", "versions": versions, "continued": continued, "cases": cases}))
