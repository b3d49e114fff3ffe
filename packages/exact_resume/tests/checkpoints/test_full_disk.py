"""A full disk, a real one of a few hundred kilobytes: the last save makes room."""

import pytest

from vertex_testing.small_disk import RunOnDisk, run_on_disk as run_on_disk

DISK = """
import os, sys
from pathlib import Path
import numpy as np
from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.async_writer import CheckpointWriter
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import Lease
from exact_resume.errors import RunError
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
last.finish()
assert checkpoints.steps(folder) == [5, 4, 3, 2], checkpoints.steps(folder)
assert all(checkpoints.load(folder, step) for step in (5, 4, 3, 2))
# What does not fit at all costs neither the newest intact one nor the best.
fill()
last.write(Checkpoint(**{{**vars(checkpoint(6)), "arrays": [np.zeros(10**6)]}}), pause_seconds=0)
try:
    last.finish()
except RunError as error:
    assert error.__cause__.errno == 28
else:
    raise AssertionError
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
last.finish()
assert 4 not in checkpoints.steps(folder)
assert checkpoints.steps(folder)[:2] == [5, 3]
"""


@pytest.mark.parametrize("program", [MAKES_ROOM, DAMAGED_FIRST])
def test_the_last_save_trades_older_checkpoints_for_room(run_on_disk: RunOnDisk, program: str) -> None:
    done = run_on_disk(program)
    assert done.returncode == 0, done.stderr
    assert "was removed for room" in done.stdout
