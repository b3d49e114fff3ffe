"""A full disk, a real one of a few hundred kilobytes: the last save makes room, and a restart fails with one line."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DISK = """
import os, sys
from pathlib import Path
import numpy as np
from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.async_writer import CheckpointWriter
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import Lease
folder = sys.argv[1] + "/run"
os.makedirs(folder)

def checkpoint(step, best=2):
    array = np.full(64_000 // 8, step, np.int64)
    return Checkpoint(step=step, best=Best(step=best, accuracy=1), identity={}, run_id="a", arrays=[array])

def writer(saved_step, passed_over=()):
    print_notice = lambda event, **fields: print(fields.get("message", event))
    lease = Lease(folder, "job")
    lease.take({})
    return CheckpointWriter(folder, lease, keep=100, best=Best(step=min(2, saved_step), accuracy=1),
        saved_step=saved_step, log_event=print_notice, passed_over=passed_over)

def fill():
    with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
"""
MAKES_ROOM = f"""{DISK}
last = writer(0)
for step in (1, 2, 3, 4):
    last.write(checkpoint(step), pause_seconds=0)
    assert not last.settle(wait=True)
fill()
# Any but the last save only fails.
last.write(checkpoint(5), pause_seconds=0)
assert last.settle(wait=True).errno == 28
assert checkpoints.steps(folder) == [4, 3, 2, 1]
last.write(checkpoint(5), pause_seconds=0)
assert last.finish() is None
assert checkpoints.steps(folder) == [5, 4, 3, 2], checkpoints.steps(folder)
assert all(checkpoints.load(folder, step) for step in (5, 4, 3, 2))
# What does not fit at all costs neither the newest intact one nor the best.
fill()
last.write(Checkpoint(**{{**vars(checkpoint(6)), "arrays": [np.zeros(10**6)]}}), pause_seconds=0)
assert last.finish().errno == 28
assert checkpoints.steps(folder) == [5, 2], checkpoints.steps(folder)
"""
DAMAGED_FIRST = f"""{DISK}
for step in (1, 2, 3, 4):
    checkpoints.save(folder, checkpoint(step))
path = Path(folder) / manifest.name(4) / checkpoints.VARIABLES_FILE
path.write_bytes(path.read_bytes()[:-1] + b"x")
last = writer(3, passed_over=[4])
fill()
last.write(checkpoint(5), pause_seconds=0)
assert last.finish() is None
assert 4 not in checkpoints.steps(folder)
assert checkpoints.steps(folder)[:2] == [5, 3]
"""
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

RunOnDisk = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_on_disk(tmp_path: Path) -> RunOnDisk:
    """Run a program with a disk of 400 kB at its first argument."""
    mounted = f"mount -t tmpfs -o size=400k none {tmp_path}"
    tried = ["unshare", "-rm", "sh", "-c", mounted]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False, capture_output=True).returncode:
        pytest.skip("needs a namespace in which a small disk can be mounted")

    def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = f'{mounted} && exec "$@"'
        words = [sys.executable, "-c", program, str(tmp_path), *arguments]
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", command, "sh", *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.mark.parametrize("program", [MAKES_ROOM, DAMAGED_FIRST])
def test_the_last_save_trades_older_checkpoints_for_room(run_on_disk: RunOnDisk, program: str) -> None:
    done = run_on_disk(program)
    assert done.returncode == 0, done.stderr
    assert "was removed for room" in done.stdout


@pytest.mark.slow
def test_a_restart_on_a_full_disk_is_one_line(run_on_disk: RunOnDisk, digits_directory: Path) -> None:
    done = run_on_disk(RESTART, str(digits_directory))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: ")
    assert last.endswith("/run/owner.json: No space left on device; free some space and run again")
