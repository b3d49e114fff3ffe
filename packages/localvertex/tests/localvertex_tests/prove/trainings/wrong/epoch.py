"""A checkpoint within an epoch counts the epoch as done (github.com/facebookresearch/fairseq/issues/32)."""

import os

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/checkpoint_last.npz"
data = np.random.default_rng(2).normal(size=(120, 4))
target = data @ np.array([1.0, -1.0, 2.0, -2.0])
weights, first_epoch = np.zeros(4), 0
if os.path.exists(path):
    state = np.load(path)
    weights, first_epoch = state["weights"], int(state["epoch"]) + 1
for epoch in range(first_epoch, 9):
    order = np.random.default_rng([6, epoch]).permutation(120)
    for batch, rows in enumerate(order.reshape(20, 6)):
        error = data[rows] @ weights - target[rows]
        weights = weights - 0.02 * data[rows].T @ error / 6
        print(f"epoch {epoch} batch {batch} loss={np.mean(error**2):.8f}", flush=True)
        if batch % 7 == 6 or batch == 19:
            np.savez(path + ".tmp.npz", weights=weights, epoch=epoch)
            os.replace(path + ".tmp.npz", path)
