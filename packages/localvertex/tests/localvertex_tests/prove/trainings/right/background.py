"""A thread writes the checkpoints while the training continues."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start = np.zeros(3), 0
if os.path.exists(path):
    with np.load(path) as last:
        weights, start = last["weights"], int(last["step"])


def save(weights: Any, step: int) -> None:
    """Write for longer than a few steps take."""
    np.savez(path + ".tmp.npz", weights=weights, step=step, padding=np.zeros(1 << 19))
    os.replace(path + ".tmp.npz", path)


with ThreadPoolExecutor(1) as writer:
    for step in range(start, 140):
        rows = np.random.default_rng([3, step]).integers(200, size=10)
        error = data[rows] @ weights - target[rows]
        weights = weights - 0.02 * data[rows].T @ error / 10
        print(f"step {step} loss {np.mean(error**2):.8f}", flush=True)
        time.sleep(0.01)
        if step % 10 == 9:
            writer.submit(save, weights, step + 1)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
