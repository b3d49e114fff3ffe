"""A training whose early stopping begins anew after a resume: neither the best loss nor the patience are saved.

So it ends later than it should, and with other weights.
https://github.com/Lightning-AI/pytorch-lightning/issues/1463
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
MAX_EPOCHS, PATIENCE, BATCHES = 60, 10, 8
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)

rng = np.random.default_rng(21)
x, x_val = rng.normal(size=(64, 40)), rng.normal(size=(200, 40))
truth = rng.normal(size=40) * (np.arange(40) < 8)
y, y_val = x @ truth + 2 * rng.normal(size=64), x_val @ truth + 2 * rng.normal(size=200)

weights, epoch, best, wait = np.zeros(40), 0, float("inf"), 0
if (folder / "last.npz").exists():
    with np.load(folder / "last.npz") as saved:
        weights, epoch = saved["weights"], int(saved["epoch"])
        if REPAIRED:
            best, wait = float(saved["best"]), int(saved["wait"])

while epoch < MAX_EPOCHS and wait < PATIENCE:
    order = np.random.default_rng([21, epoch]).permutation(64).reshape(BATCHES, -1)
    for number, batch in enumerate(order):
        error = x[batch] @ weights - y[batch]
        weights = weights - 0.01 * x[batch].T @ error / len(batch)
        print(f"epoch {epoch} global_step {epoch * BATCHES + number} train_loss {(error**2).mean():.6f}", flush=True)
        time.sleep(0.012)
    val_loss = float(((x_val @ weights - y_val) ** 2).mean())
    wait = 0 if val_loss < best else wait + 1
    best = min(best, val_loss)
    epoch += 1
    print(f"epoch {epoch} val_loss {val_loss:.6f}", flush=True)
    np.savez(folder / "last.tmp.npz", weights=weights, epoch=epoch, best=best, wait=wait)
    os.replace(folder / "last.tmp.npz", folder / "last.npz")

print(f"stopped after {epoch} epochs")
model = pathlib.Path(os.environ["AIP_MODEL_DIR"])
model.mkdir(parents=True, exist_ok=True)
np.savez(model / "weights.npz", weights=weights)
