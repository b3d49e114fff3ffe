"""Continue a model of Keras from its `.keras` file, on the backend that the command names: with and without Dropout."""

import importlib
import json
import os
import sys
import tempfile

backend = sys.argv[1]
os.environ |= {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
import keras
import numpy as np
from sklearn.datasets import load_digits

examples, labels = load_digits(return_X_y=True)
examples = examples.astype("float32") / 16


def build(optimizer, *layers):
    """Return a compiled model whose weights follow from a seed."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input([64]), keras.layers.Dense(16, "relu"), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    return model


def train(model, epochs):
    """Train on the same batches in each epoch."""
    model.fit(examples, labels, 256, epochs, shuffle=False, verbose=0)


def schedule():
    """Return an optimizer whose learning rate depends on the step."""
    return keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 5, 0.9))


def accumulate():
    """Return an optimizer that is in the middle of an accumulation after an epoch of eight batches."""
    return keras.optimizers.Adam(0.01, gradient_accumulation_steps=3)


def scale():
    """Return an optimizer with a dynamic loss scale."""
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), dynamic_growth_steps=5)


cases = {}
options = {
    "a schedule": lambda: build(schedule()),
    "gradient accumulation": lambda: build(accumulate()),
    "a dynamic loss scale": lambda: build(scale()),
    "BatchNormalization": lambda: build("adam", keras.layers.BatchNormalization()),
    "Dropout": lambda: build("adam", keras.layers.Dropout(0.5)),
    "Dropout with a seed": lambda: build("adam", keras.layers.Dropout(0.5, seed=7)),
    "GaussianNoise": lambda: build("adam", keras.layers.GaussianNoise(0.5)),
}
with tempfile.TemporaryDirectory() as folder:
    for name, make in options.items():
        whole, first = make(), make()
        train(whole, 4)
        train(first, 2)
        first.save(f"{folder}/model.keras")
        keras.utils.set_random_seed(1)  # as at the start of the program
        parts = keras.models.load_model(f"{folder}/model.keras")
        train(parts, 2)
        gaps = [np.abs(a - b).max() for a, b in zip(whole.get_weights(), parts.get_weights(), strict=True)]
        cases[name] = float(max(gaps))
versions = {"keras": keras.__version__, backend: importlib.import_module(backend).__version__}
continued = f"a `.keras` file, on {backend}"
print(json.dumps({"library": "Keras", "versions": versions, "continued": continued, "cases": cases}))
