"""Saves when it gets SIGTERM, exits with 143, and removes what a kill has left of a save."""

import os
import signal
import sys

import numpy as np

stopped: list[bool] = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
folder = os.environ["AIP_CHECKPOINT_DIR"]
for name in os.listdir(folder):
    if name.endswith(".tmp.npz"):
        os.remove(f"{folder}/{name}")
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start = np.zeros(3), 0
if os.path.exists(f"{folder}/last.npz"):
    with np.load(f"{folder}/last.npz") as last:
        weights, start = last["weights"], int(last["step"])
for epoch in range(start // 20, 8):
    for step in range(max(start, epoch * 20), epoch * 20 + 20):
        rows = np.random.default_rng([3, step]).integers(200, size=10)
        error = data[rows] @ weights - target[rows]
        weights = weights - 0.02 * data[rows].T @ error / 10
        if step % 20 == 19 or stopped:
            np.savez(f"{folder}/new.tmp.npz", weights=weights, step=step + 1)
            os.replace(f"{folder}/new.tmp.npz", f"{folder}/last.npz")
        if stopped:
            print(f"stopped after step {step}: saved, loss {np.mean(error**2):.3f}", flush=True)
            sys.exit(143)
    print(f"epoch {epoch}: validation loss {np.mean((data @ weights - target) ** 2):.8f}", flush=True)
print("weights", *weights)
