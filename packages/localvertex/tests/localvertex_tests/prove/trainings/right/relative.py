"""Logs every seventh step from where it resumed, and writes its metrics and the number of its starts."""

import json
import os
import time

import numpy as np

began, folder = time.time(), os.environ["AIP_CHECKPOINT_DIR"]
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start, starts = np.zeros(3), 0, 0
if os.path.exists(f"{folder}/latest"):
    with open(f"{folder}/latest") as file, np.load(f"{folder}/{file.read()}/weights.npz") as last:
        weights, start, starts = last["weights"], int(last["step"]), int(last["starts"])
for step in range(start, 200):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    if (step - start) % 7 == 0:
        print(f"step {step}: train loss {np.mean(error**2):.8f}", flush=True)
    if (step + 1) % 20 == 0:
        name = f"step-{step + 1}"
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        np.savez(f"{folder}/{name}/weights.npz", weights=weights, step=step + 1, starts=starts + 1)
        with open(f"{folder}/latest.tmp", "w") as file:
            file.write(name)
        os.replace(f"{folder}/latest.tmp", f"{folder}/latest")
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
with open(os.environ["AIP_MODEL_DIR"] + "/metrics.json", "w") as file:
    loss = float(np.mean((data @ weights - target) ** 2))
    json.dump({"loss": loss, "starts": starts + 1, "seconds": time.time() - began, "created": time.ctime()}, file)
