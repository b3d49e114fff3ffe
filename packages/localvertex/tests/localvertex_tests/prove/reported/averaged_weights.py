"""A detector's training that saves the moving average only, and resumes with it as the weights, too.

https://github.com/Megvii-BaseDetection/YOLOX/issues/1318
"""

import os
import pathlib
import sys
import time

import numpy as np

REPAIRED = "REPAIRED=1" in sys.argv
MAX_EPOCH, MAX_ITER, DECAY = 10, 20, 0.98
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)
latest = folder / "latest_ckpt.npz"

rng = np.random.default_rng(5)
images = rng.normal(size=(320, 8))
boxes = np.tanh(images @ rng.normal(size=(8, 4)))

model = 0.1 * np.random.default_rng(0).normal(size=(8, 4))
momentum, average, start_epoch = np.zeros((8, 4)), model, 0
if latest.exists():
    with np.load(latest) as ckpt:
        average, momentum, start_epoch = ckpt["average"], ckpt["momentum"], int(ckpt["epoch"])
        model = ckpt["model"] if REPAIRED else average

for epoch in range(start_epoch, MAX_EPOCH):
    shuffled = np.random.default_rng(100 + epoch).permutation(len(images))
    for iteration in range(MAX_ITER):
        began = time.perf_counter()
        batch = shuffled[iteration * 16 : (iteration + 1) * 16]
        predicted = np.tanh(images[batch] @ model)
        error = predicted - boxes[batch]
        loss = float((error**2).mean())
        rate = 0.05 * (1 + np.cos(np.pi * (epoch * MAX_ITER + iteration) / (MAX_EPOCH * MAX_ITER)))
        momentum = 0.9 * momentum + images[batch].T @ (error * (1 - predicted**2)) / 16
        model = model - rate * momentum
        average = DECAY * average + (1 - DECAY) * model
        time.sleep(0.012)
        print(
            f"epoch: {epoch + 1}/{MAX_EPOCH}, iter: {iteration + 1}/{MAX_ITER}, "
            f"iter_time: {time.perf_counter() - began:.3f}s, total_loss: {loss:.6f}, lr: {rate:.3e}",
            flush=True,
        )
    np.savez(folder / "saving.npz", average=average, model=model, momentum=momentum, epoch=epoch + 1)
    os.replace(folder / "saving.npz", latest)

os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.savez(os.path.join(os.environ["AIP_MODEL_DIR"], "best.npz"), average=average)
