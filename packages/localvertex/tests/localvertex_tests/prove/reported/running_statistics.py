"""A network with batch normalization that saves its parameters: the running mean and variance are not among them.

The loss in training goes on as before, and the evaluation begins with mean 0 and variance 1.
https://github.com/torch/nn/issues/1165
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
EPOCHS, BATCHES, BATCH = 10, 20, 16
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)
path = folder / "params.npz"

rng = np.random.default_rng(2)
x = rng.normal(size=(320, 6)) * np.array([1, 2, 3, 4, 5, 6]) + np.array([4, -3, 2, -1, 0, 5])
y = np.sin(x @ rng.normal(size=6) / 4) + 0.1 * rng.normal(size=320)
x_test, y_test = x[:64] + 0.1, y[:64]

weight, bias = 0.1 * rng.normal(size=6), 0.0
running_mean, running_var, epoch = np.zeros(6), np.ones(6), 0
if path.exists():
    with np.load(path) as params:
        weight, bias, epoch = params["weight"], float(params["bias"]), int(params["epoch"])
        if REPAIRED:
            running_mean, running_var = params["running_mean"], params["running_var"]

while epoch < EPOCHS:
    order = np.random.default_rng(epoch).permutation(320).reshape(BATCHES, BATCH)
    for number, batch in enumerate(order):
        mean, var = x[batch].mean(axis=0), x[batch].var(axis=0)
        normalized = (x[batch] - mean) / np.sqrt(var + 1e-5)
        running_mean = 0.9 * running_mean + 0.1 * mean
        running_var = 0.9 * running_var + 0.1 * var * BATCH / (BATCH - 1)
        error = normalized @ weight + bias - y[batch]
        weight = weight - 0.05 * normalized.T @ error / BATCH
        bias -= 0.05 * float(error.mean())
        print(f"step {epoch * BATCHES + number + 1}: loss = {(error**2).mean():.6f}", flush=True)
        time.sleep(0.012)
    epoch += 1
    evaluated = (x_test - running_mean) / np.sqrt(running_var + 1e-5) @ weight + bias
    print(f"epoch {epoch}: test loss = {((evaluated - y_test) ** 2).mean():.6f}", flush=True)
    new = folder / "params.new.npz"
    np.savez(new, weight=weight, bias=bias, epoch=epoch, running_mean=running_mean, running_var=running_var)
    new.replace(path)

model = pathlib.Path(os.environ["AIP_MODEL_DIR"])
model.mkdir(parents=True, exist_ok=True)
np.savez(model / "params.npz", weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
