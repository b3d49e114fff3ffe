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


@pytest.mark.slow
def test_a_restart_on_a_full_disk_is_one_line(run_on_disk: RunOnDisk, digits_directory: Path) -> None:
    done = run_on_disk(RESTART, str(digits_directory))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: ")
    assert last.endswith("/run/owner.json: No space left on device; free some space and run again")
