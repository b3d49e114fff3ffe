"""A command and a step on a full disk, a real one of a few hundred kilobytes, fail with one line."""

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


PREPARE = """
import sys
from components.prepare.dataset import prepare, report_errors
folder = sys.argv[1]
outputs = {"output_directory": folder + "/dataset", "report_path": folder + "/report.html"}
values = {"source": "digits", "image_size": 64, "pipeline_root": sys.argv[2]}
report_errors(prepare)(settings={}, dataflow={}, **outputs, **values)
"""


@pytest.mark.parametrize("root", ["", "root"])
def test_the_step_prepare_on_a_full_disk_is_one_line(run_on_disk: RunOnDisk, tmp_path: Path, root: str) -> None:
    done = run_on_disk(PREPARE, root and str(tmp_path / root))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("failed: ")]
    assert line.endswith("No space left on device; free some space and run again")
