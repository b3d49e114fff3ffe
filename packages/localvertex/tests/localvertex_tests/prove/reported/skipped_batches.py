"""A trainer that skips as many batches as it has made updates, although an update takes four batches.

So a resumed epoch goes back to examples that it has had. 2,748 batches were skipped instead of 10,992.
https://github.com/huggingface/transformers/issues/5605
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
ACCUMULATION, BATCH, EPOCHS, SAVE_STEPS = 4, 8, 4, 8
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)

rng = np.random.default_rng(7)
inputs = rng.normal(size=(640, 6))
labels = inputs @ rng.normal(size=6) + 0.3 * rng.normal(size=640)
batches_per_epoch = len(inputs) // BATCH
updates_per_epoch = batches_per_epoch // ACCUMULATION

weights, velocity, global_step = np.zeros(6), np.zeros(6), 0
if (folder / "checkpoint.npz").exists():
    with np.load(folder / "checkpoint.npz") as saved:
        weights, velocity, global_step = saved["weights"], saved["velocity"], int(saved["global_step"])
epochs_trained = global_step // updates_per_epoch
to_skip = global_step % updates_per_epoch
if REPAIRED:
    to_skip *= ACCUMULATION

for epoch in range(epochs_trained, EPOCHS):
    order = np.random.default_rng(epoch).permutation(len(inputs))
    gradient, total_loss = np.zeros(6), 0.0
    for step in range(batches_per_epoch):
        if to_skip > 0:
            to_skip -= 1
            continue
        chosen = order[step * BATCH : (step + 1) * BATCH]
        error = inputs[chosen] @ weights - labels[chosen]
        gradient += inputs[chosen].T @ error / BATCH / ACCUMULATION
        total_loss += float((error**2).mean()) / ACCUMULATION
        time.sleep(0.01)
        if (step + 1) % ACCUMULATION == 0 and global_step < EPOCHS * updates_per_epoch:
            rate = 0.05 * (1 - global_step / (EPOCHS * updates_per_epoch))
            velocity = 0.9 * velocity + gradient
            weights = weights - rate * velocity
            global_step += 1
            print({"loss": total_loss, "learning_rate": rate, "step": global_step}, flush=True)
            gradient, total_loss = np.zeros(6), 0.0
            if global_step % SAVE_STEPS == 0:
                np.savez(folder / "new.npz", weights=weights, velocity=velocity, global_step=global_step)
                (folder / "new.npz").replace(folder / "checkpoint.npz")

model = pathlib.Path(os.environ["AIP_MODEL_DIR"])
model.mkdir(parents=True, exist_ok=True)
np.savez(model / "model.npz", weights=weights)
