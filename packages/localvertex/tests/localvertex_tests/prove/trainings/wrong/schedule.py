"""The learning-rate schedule starts anew after a restart (github.com/lightly-ai/lightly-train/pull/301)."""

import os

import numpy as np

folder = os.environ["AIP_CHECKPOINT_DIR"]
path = f"{folder}/last.npz"
data = np.random.default_rng(0).normal(size=(300, 6))
target = data @ np.arange(1.0, 7.0)
weights, first = np.zeros(6), 0
if os.path.exists(path):
    saved = np.load(path)
    weights, first = saved["weights"], int(saved["step"])


class Schedule:
    """Warms up for 40 steps, then decays."""

    last_step = -1

    def step(self) -> float:
        self.last_step += 1
        return 0.1 * min(1.0, (self.last_step + 1) / 40) * 0.99**self.last_step


schedule = Schedule()  # the checkpoint has no state of it
for step in range(first, 150):
    rows = np.random.default_rng(step).integers(300, size=20)
    error = data[rows] @ weights - target[rows]
    rate = schedule.step()
    print(f"step {step + 1} loss {np.mean(error**2):.8f} lr {rate:.6f}", flush=True)
    weights -= rate * data[rows].T @ error / 20
    if (step + 1) % 25 == 0:
        np.savez(f"{path}.tmp.npz", weights=weights, step=step + 1)
        os.replace(f"{path}.tmp.npz", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
np.save(os.environ["AIP_MODEL_DIR"] + "/weights.npy", weights)
