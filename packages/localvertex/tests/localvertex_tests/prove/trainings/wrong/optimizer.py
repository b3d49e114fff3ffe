"""Adam's moments are not in the checkpoint (github.com/EvolvingLMMs-Lab/OneVision-Encoder/pull/65)."""

import os

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/backbone.npz"
data = np.random.default_rng(3).normal(size=(400, 5))
labels = (data @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) > 0).astype(float)
weights, begin = np.zeros(5), 0
if os.path.exists(path):
    with np.load(path) as saved:
        weights, begin = saved["backbone"], int(saved["global_step"])
mean, variance, count = np.zeros(5), np.zeros(5), 0
for step in range(begin, 200):
    rows = np.random.default_rng([7, step]).permutation(400)[:32]
    chance = 1 / (1 + np.exp(-data[rows] @ weights))
    loss = -np.mean(np.log(np.where(labels[rows] > 0, chance, 1 - chance) + 1e-12))
    print(f"[train] global_step={step} loss={loss:.7f}", flush=True)
    gradient = data[rows].T @ (chance - labels[rows]) / 32
    count += 1
    mean = 0.9 * mean + 0.1 * gradient
    variance = 0.999 * variance + 0.001 * gradient**2
    weights -= 0.02 * (mean / (1 - 0.9**count)) / (np.sqrt(variance / (1 - 0.999**count)) + 1e-8)
    if step % 20 == 19:
        temporary = path.replace(".npz", ".partial.npz")
        np.savez(temporary, backbone=weights, global_step=step + 1)
        os.replace(temporary, path)
print("train accuracy", np.mean((data @ weights > 0) == labels))
