"""A trainer that saves after each epoch, in the middle of an accumulation, and forgets the gradients so far.

The first update after a resume is made from one to three batches instead of four.
https://github.com/huggingface/transformers/issues/22143
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
ACCUMULATION, BATCH, EPOCHS = 4, 16, 9
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)
last = folder / "last.npz"

rng = np.random.default_rng(3)
features = rng.normal(size=(400, 5))
targets = (features @ rng.normal(size=5) + rng.normal(size=400) > 0).astype(float)
batches = len(features) // BATCH  # 25: not a multiple of 4

weights, gradient, epoch = np.zeros(5), np.zeros(5), 0
if last.exists():
    with np.load(last) as saved:
        weights, epoch = saved["weights"], int(saved["epoch"])
        if REPAIRED:
            gradient = saved["gradient"]

while epoch < EPOCHS:
    order = np.random.default_rng([3, epoch]).permutation(len(features))
    for number in range(batches):
        chosen = order[number * BATCH : (number + 1) * BATCH]
        probability = 1 / (1 + np.exp(-features[chosen] @ weights))
        likelihood = np.where(targets[chosen] == 1, probability, 1 - probability)
        gradient = gradient + features[chosen].T @ (probability - targets[chosen]) / BATCH
        total_batched_samples = epoch * batches + number + 1
        if total_batched_samples % ACCUMULATION == 0:
            weights = weights - 0.2 * gradient / ACCUMULATION
            gradient = np.zeros(5)
        print(f"epoch {epoch} step {total_batched_samples} loss {-np.log(likelihood).mean():.6f}", flush=True)
        time.sleep(0.012)
    epoch += 1
    temporary = folder / "temporary.npz"
    np.savez(temporary, weights=weights, gradient=gradient, epoch=epoch)
    temporary.replace(last)

os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.save(os.path.join(os.environ["AIP_MODEL_DIR"], "weights.npy"), weights)
