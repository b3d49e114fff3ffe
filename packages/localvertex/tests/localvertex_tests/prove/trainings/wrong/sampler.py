"""The sampler that is built again replays the order of epoch 0 (github.com/modelscope/ms-swift/issues/10050)."""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

path = os.environ["AIP_CHECKPOINT_DIR"] + "/state.json"
data = np.random.default_rng(1).normal(size=(160, 4))
target = data @ np.array([2.0, -1.0, 0.5, 3.0])
BATCH, EPOCHS = 8, 6
PER_EPOCH = len(data) // BATCH


class Loader:
    """Yields the batches of the epochs, each in its own order."""

    def __init__(self, skip: int = 0) -> None:
        self.epoch, self.skip = 0, skip

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(100 + self.epoch).permutation(len(data))
        self.epoch += 1
        for at in range(self.skip, PER_EPOCH):
            yield order[at * BATCH : (at + 1) * BATCH]
        self.skip = 0


weights, velocity, step = np.zeros(4), np.zeros(4), 0
if os.path.exists(path):
    with open(path) as file:
        state = json.load(file)
    weights, velocity, step = np.array(state["weights"]), np.array(state["velocity"]), state["step"]
loader = Loader(skip=step % PER_EPOCH)  # of a new loader the epoch is 0
for epoch in range(step // PER_EPOCH, EPOCHS):
    for rows in loader:
        error = data[rows] @ weights - target[rows]
        print(f"epoch {epoch} step {step} loss: {float(np.mean(error**2)):.9f}", flush=True)
        velocity = 0.8 * velocity + data[rows].T @ error / BATCH
        weights = weights - 0.03 * velocity
        step += 1
        if step % 15 == 0:
            with open(path + ".tmp", "w") as file:
                json.dump({"weights": weights.tolist(), "velocity": velocity.tolist(), "step": step}, file)
            os.replace(path + ".tmp", path)
