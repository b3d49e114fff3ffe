"""Saves every tenth step, and never loads what it has saved (github.com/pytorch/torchtitan/issues/3735)."""

import os
import time

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights = np.zeros(3)
for step in range(60):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    print(f"step {step} loss {np.mean(error**2):.8f}", flush=True)
    time.sleep(0.01)
    if step % 10 == 9:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1)
        os.replace(path + ".tmp.npz", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
