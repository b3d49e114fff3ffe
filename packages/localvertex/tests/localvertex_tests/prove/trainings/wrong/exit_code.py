"""A handler takes SIGTERM for the end of the training (github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5068)."""

import os
import signal
import sys

import numpy as np

stopped: list[bool] = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
path = os.environ["AIP_CHECKPOINT_DIR"] + "/checkpoint.npz"
data = np.random.default_rng(4).normal(size=(100, 3))
target = data @ np.array([0.5, -0.5, 2.0])
weights, first = np.zeros(3), 0
if os.path.exists(path):
    saved = np.load(path)
    weights, first = saved["weights"], int(saved["step"])
for step in range(first, 180):
    row = np.random.default_rng([1, step]).integers(100)
    error = data[row] @ weights - target[row]
    weights = weights - 0.05 * error * data[row]
    print(f"step={step} loss={error**2:.9f}", flush=True)
    if step % 30 == 29 or stopped:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1)
        os.replace(path + ".tmp.npz", path)
    if stopped:
        sys.exit(0)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.save(os.environ["AIP_MODEL_DIR"] + "/weights.npy", weights)
