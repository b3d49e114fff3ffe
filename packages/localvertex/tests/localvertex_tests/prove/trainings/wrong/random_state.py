"""The generator of the noise is seeded again after a restart (github.com/ai2cm/ace/issues/690)."""

import os

import numpy as np

noise = np.random.default_rng(42)
path = os.environ["AIP_CHECKPOINT_DIR"] + "/ckpt.npz"
x = np.linspace(-1, 1, 128)[:, None] ** np.arange(5)
y = np.sin(3 * x[:, 1])
w, done = np.zeros(5), 0
if os.path.isfile(path):
    archive = np.load(path)
    w, done = archive["w"], int(archive["iteration"])
for iteration in range(done, 160):
    order = np.random.default_rng([5, iteration]).permutation(128)[:16]
    kept = noise.random((16, 5)) > 0.2  # dropout
    inputs = x[order] * kept / 0.8
    error = inputs @ w - y[order]
    w = w - 0.05 * inputs.T @ error / 16
    print(
        f"iteration {iteration:4d} | loss {np.mean(error**2):.6e} | order {' '.join(map(str, order[:4]))}", flush=True
    )
    if iteration % 20 == 19:
        np.savez(path + ".new.npz", w=w, iteration=iteration + 1)
        os.rename(path + ".new.npz", path)
print("final w", *w)
