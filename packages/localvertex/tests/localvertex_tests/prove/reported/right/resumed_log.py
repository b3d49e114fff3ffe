"""Right, with one wrong line in its log: the second loss after a resume is a mean with the first.

In the report, 11.1368 instead of 11.1561 at step 52; "not the forward computation, gradients, optimizer update".
https://github.com/NVIDIA/Megatron-LM/issues/6237
"""

import os
import pathlib
import time

import numpy as np

ITERATIONS, SAVE_INTERVAL = 200, 25
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)

rng = np.random.default_rng(8)
x = rng.normal(size=(300, 5))
y = x @ rng.normal(size=5) + rng.normal(size=300)

w, momentum, iteration = np.zeros(5), np.zeros(5), 0
if (folder / "model.npz").exists():
    with np.load(folder / "model.npz") as saved:
        w, momentum, iteration = saved["w"], saved["momentum"], int(saved["iteration"])

is_first, total_loss, advanced = iteration > 0, 0.0, 0
while iteration < ITERATIONS:
    batch = np.random.default_rng([8, iteration]).integers(300, size=16)
    error = x[batch] @ w - y[batch]
    momentum = 0.9 * momentum + x[batch].T @ error / 16
    w = w - 0.01 * momentum
    iteration += 1
    total_loss, advanced = total_loss + float((error**2).mean()), advanced + 1
    print(f"iteration {iteration:8d}/{ITERATIONS:8d} | lm loss: {total_loss / advanced:.6E} |", flush=True)
    if not is_first:
        total_loss, advanced = 0.0, 0
    is_first = False
    time.sleep(0.012)
    if iteration % SAVE_INTERVAL == 0:
        np.savez(folder / "unfinished.npz", w=w, momentum=momentum, iteration=iteration)
        os.replace(folder / "unfinished.npz", folder / "model.npz")

model = pathlib.Path(os.environ["AIP_MODEL_DIR"])
model.mkdir(parents=True, exist_ok=True)
np.savez(model / "weights.npz", w=w)
