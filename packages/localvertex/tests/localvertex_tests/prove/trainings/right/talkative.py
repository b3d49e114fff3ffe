"""Its log has times, processes, paths and estimates, and other lines after a restart."""

import datetime
import os
import socket
import tempfile
import time
import uuid

import numpy as np

began = time.time()
path = os.environ["AIP_CHECKPOINT_DIR"] + "/last.npz"
data = np.random.default_rng(8).normal(size=(200, 3))
target = data @ np.array([1.0, 2.0, 3.0])
weights, start = np.zeros(3), 0
print(f"run {uuid.uuid4().hex} pid {os.getpid()} on {socket.gethostname()} in {tempfile.gettempdir()}/{uuid.uuid4()}")
if os.path.exists(path):
    with np.load(path) as last:
        weights, start = last["weights"], int(last["step"])
    print(f"resuming from step {start}: best loss 0.123, attempt 2, {start} steps done")
for step in range(start, 140):
    rows = np.random.default_rng([3, step]).integers(200, size=10)
    error = data[rows] @ weights - target[rows]
    weights = weights - 0.02 * data[rows].T @ error / 10
    now, took = datetime.datetime.now(), time.time() - began
    left = took / (step - start + 1) * (139 - step)
    print(
        f"{now} INFO [{os.getpid()}] step {step + 1}/140 [{took:.2f}s<{left:.2f}s, {(step - start + 1) / took:.1f}it/s]"
        f" loss={np.mean(error**2):.8f} elapsed={took:.1f} eta: {left:.0f} mem {os.getpid() % 97} MB",
        flush=True,
    )
    if (step + 1) % 20 == 0:
        np.savez(path + ".tmp.npz", weights=weights, step=step + 1, saved_time=time.time())
        os.replace(path + ".tmp.npz", path)
        print(f"saved checkpoint at step {step + 1} in {time.time() - began:.3f} s", flush=True)
print(f"done in {time.time() - began:.2f} s, final loss {np.mean((data @ weights - target) ** 2):.8f}")
