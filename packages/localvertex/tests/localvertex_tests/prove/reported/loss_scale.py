"""Training in half precision that saves all but the scale of the loss: after a resume it starts at 65536 again.

The gradients overflow, so updates are skipped, and the learning rate, which counts updates, lags behind. In the
report the scale was 256 when the run was stopped.
https://github.com/huggingface/transformers/issues/34053
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
STEPS, WARMUP, SAVE_EVERY = 200, 20, 20
directory = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
directory.mkdir(parents=True, exist_ok=True)

rng = np.random.default_rng(11)
x = rng.normal(size=(512, 4)) * np.array([30.0, 10.0, 5.0, 1.0])
y = x @ np.array([0.5, -1.0, 2.0, 3.0]) + 10 * rng.normal(size=512)

w, updates, scale, start = np.zeros(4), 0, 65536.0, 0
checkpoints = sorted(directory.glob("step-*.npz"))
if checkpoints:
    with np.load(checkpoints[-1]) as state:
        w, updates, start = state["w"], int(state["updates"]), int(state["step"])
        if REPAIRED:
            scale = float(state["scale"])

for step in range(start, STEPS):
    batch = np.random.default_rng([11, step]).choice(len(x), size=32, replace=False)
    error = x[batch] @ w - y[batch]
    rate = 1e-3 * min(1, (updates + 1) / WARMUP) * (1 - updates / STEPS)
    with np.errstate(over="ignore"):
        scaled = (scale * (x[batch].T @ error) / len(batch)).astype(np.float16)
    if np.isfinite(scaled).all():
        w = w - rate * scaled.astype(np.float64) / scale
        updates += 1
    else:
        scale /= 2
    print(f"step={step + 1} loss={np.mean(error**2):.5f} lr={rate:.3e}", flush=True)
    time.sleep(0.012)
    if (step + 1) % SAVE_EVERY == 0:
        np.savez(directory / "partial.npz", w=w, updates=updates, scale=scale, step=step + 1)
        os.replace(directory / "partial.npz", directory / f"step-{step + 1:05d}.npz")

output = pathlib.Path(os.environ["AIP_MODEL_DIR"])
output.mkdir(parents=True, exist_ok=True)
np.savez(output / "final.npz", w=w)
