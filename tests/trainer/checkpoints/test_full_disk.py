"""A restart on a full disk, a real one of a few hundred kilobytes, fails with one line."""

from pathlib import Path

import pytest

from vertex_testing.small_disk import RunOnDisk, run_on_disk as run_on_disk

RESTART = """
import os, sys
from trainer import command_line, task
folder = sys.argv[1] + "/run"
os.makedirs(folder + "/events")
with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
sys.argv = ["task", "--dataset", sys.argv[2], "--checkpoint-directory", folder, "--max-steps=2"]
sys.exit(command_line.run(task.main))
"""

STOP = """
import glob, os, signal, sys, threading, time
from trainer import command_line, task
folder = sys.argv[1] + "/run"
sys.path.insert(0, sys.argv[1])
with open(sys.argv[1] + "/network.py", "w") as file:
    file.write(sys.argv[3])
def fill_and_stop():
    while not glob.glob(folder + "/step-*/manifest.json"):
        time.sleep(0.01)
    try:
        with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=fill_and_stop, daemon=True).start()
sys.argv = ["task", "--dataset", sys.argv[2], "--checkpoint-directory", folder, "--epochs=2000",
            "--model=network:build", "--checkpoint-every-steps=5", "--keep-checkpoints=1"]
sys.exit(command_line.run(task.main))
"""


NETWORK = """
import keras

def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    values = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(images))
    return keras.Model(images, keras.layers.Dense(num_classes, "softmax", dtype="float32")(values))
"""


@pytest.mark.slow
def test_a_stop_on_a_full_disk_is_still_a_stop(run_on_disk: RunOnDisk, digits_directory: Path) -> None:
    """With exit code 1, the job would not be restarted from its last save."""
    done = run_on_disk(STOP, str(digits_directory), NETWORK)
    assert done.returncode == 143, done.stderr
    assert "could not be saved" in done.stdout


@pytest.mark.slow
def test_a_restart_on_a_full_disk_is_one_line(run_on_disk: RunOnDisk, digits_directory: Path) -> None:
    done = run_on_disk(RESTART, str(digits_directory))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: ")
    assert last.endswith("/run/owner.json: No space left on device; free some space and run again")
