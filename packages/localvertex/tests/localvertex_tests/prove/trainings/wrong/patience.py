"""The counter of early stopping is not in the checkpoint."""

import os
import time

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0]) + np.random.default_rng(5).normal(size=200)
weights, start, best, waited = np.zeros(3), 0, np.inf, 0
if os.path.exists(path):
    with np.load(path) as last:
        weights, start, best = last["weights"], int(last["step"]), float(last["best"])
for step in range(start, 600):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.08 * data[rows].T @ error / 10
    loss = np.mean((data @ weights - target) ** 2)
    print(f"step {step} val_loss {loss:.8f}", flush=True)
    time.sleep(0.01)
    best, waited = (loss, 0) if loss < best else (best, waited + 1)
    if waited == 40:
        break
    if step % 10 == 9:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1, best=best)
        os.replace(path + ".tmp.npz", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
