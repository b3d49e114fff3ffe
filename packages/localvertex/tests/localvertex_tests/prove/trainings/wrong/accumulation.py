"""A checkpoint between two updates is without the gradients of the batches since the first."""

import os
import time

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start, gradient = np.zeros(3), 0, np.zeros(3)
if os.path.exists(path):
    with np.load(path) as last:
        weights, start = last["weights"], int(last["step"])
for step in range(start, 120):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    gradient = gradient + data[rows].T @ error / 40
    if step % 4 == 3:
        weights, gradient = weights - 0.05 * gradient, np.zeros(3)
    print(f"step {step} loss {np.mean(error**2):.8f}", flush=True)
    time.sleep(0.01)
    if step % 10 == 9:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1)
        os.replace(path + ".tmp.npz", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
