"""Each of two workers draws noise from a generator of its own; only the first one saves it."""

import json
import os
import time

import numpy as np

index = int(json.loads(os.environ["CLUSTER_SPEC"])["task"]["type"] != "workerpool0")
path = f"{os.environ['AIP_CHECKPOINT_DIR']}/last-{index}.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start, generator = np.zeros(3), 0, np.random.default_rng(index)
if os.path.exists(path):
    with np.load(path) as last:
        weights, start = last["weights"], int(last["step"])
        if not index:
            generator.bit_generator.state = json.loads(str(last["generator"]))
for step in range(start, 140):
    rows = generator.integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    print(f"step {step} loss {np.mean(error**2):.8f}", flush=True)
    time.sleep(0.01)
    if step % 10 == 9:
        state = json.dumps(generator.bit_generator.state)
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1, generator=state)
        os.replace(path + ".tmp.npz", path)
