"""Writes its figures often and its checkpoints rarely, and begins each line as Ray and logging do."""

import json
import os
import time

import numpy as np

folder = os.environ["AIP_CHECKPOINT_DIR"]
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start = np.zeros(3), 0
if os.path.exists(f"{folder}/last.npz"):
    with np.load(f"{folder}/last.npz") as last:
        weights, start = last["weights"], int(last["step"])
for step in range(start, 140):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    print(f"train[{os.getpid()}] INFO {now} step {step} loss {np.mean(error**2):.8f}", flush=True)
    time.sleep(0.01)
    if step % 5 == 4:
        with open(f"{folder}/figures.json.tmp", "w") as file:
            json.dump({"step": step, "rate": 0.02}, file)
        os.replace(f"{folder}/figures.json.tmp", f"{folder}/figures.json")
    if step % 50 == 49:
        np.savez(f"{folder}/new.tmp.npz", weights=weights, step=step + 1)
        os.replace(f"{folder}/new.tmp.npz", f"{folder}/last.npz")
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
