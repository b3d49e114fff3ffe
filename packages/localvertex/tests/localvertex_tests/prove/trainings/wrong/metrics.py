"""The weights are exact; the count and mean of the metric are since the last start."""

import json
import os
import time

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start, losses = np.zeros(3), 0, list[float]()
if os.path.exists(path):
    with np.load(path) as last:
        weights, start = last["weights"], int(last["step"])
for step in range(start, 120):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    losses.append(float(np.mean(error**2)))
    print(f"step {step} loss {losses[-1]:.8f}", flush=True)
    time.sleep(0.01)
    if step % 10 == 9:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1)
        os.replace(path + ".tmp.npz", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
with open(os.environ["AIP_MODEL_DIR"] + "/metrics.json", "w") as file:
    json.dump({"mean_loss": sum(losses) / len(losses), "best_loss": min(losses[:9])}, file)
