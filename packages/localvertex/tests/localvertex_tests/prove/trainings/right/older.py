"""Keeps three checkpoints with their checksums, and resumes from an older one if the newest is damaged."""

import hashlib
import io
import os

import numpy as np

folder = os.environ["AIP_CHECKPOINT_DIR"]
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start = np.zeros(3), 0
for name in sorted((each for each in os.listdir(folder) if each.endswith(".ckpt")), reverse=True):
    with open(f"{folder}/{name}", "rb") as file:
        digest, content = file.read(64), file.read()
    if hashlib.sha256(content).hexdigest().encode() == digest:
        with np.load(io.BytesIO(content)) as last:
            weights, start = last["weights"], int(last["step"])
        break
    print(f"warning: {name} is damaged")
for step in range(start, 140):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    print(f"step {step} loss {np.mean(error**2):.8f} examples {' '.join(map(str, rows))}", flush=True)
    if (step + 1) % 20 == 0:
        buffer = io.BytesIO()
        np.savez(buffer, weights=weights, step=step + 1)
        content = buffer.getvalue()
        # Under its final name at once: whoever reads it checks it.
        with open(f"{folder}/{step + 1:06d}.ckpt", "wb") as file:
            file.write(hashlib.sha256(content).hexdigest().encode() + content)
        for name in sorted(each for each in os.listdir(folder) if each.endswith(".ckpt"))[:-3]:
            os.remove(f"{folder}/{name}")
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.environ["AIP_MODEL_DIR"] + "/model.npz", weights=weights)
