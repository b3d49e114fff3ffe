"""A killed prepare or export leaves nothing behind once it has been started again."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.modules import run_module
from vertex_testing import kill_point

pytestmark = pytest.mark.slow


def run_until_it_publishes(folder: Path, program: str, *words: str) -> int:
    """Run a program that kills itself when its files are written, before they are published; return its exit code."""
    code = folder / "code"
    code.mkdir()
    shutil.copy(Path(*kill_point.__path__) / "sitecustomize.py", code)
    point = {"module": "exact_resume.files.publication", "name": "_flush_to_disk", "when": "before", "is_run": False}
    (folder / "point.json").write_text(json.dumps(point))
    return run_module(program, *words, PYTHONPATH=str(code)).returncode


@pytest.mark.parametrize("program", ["prepare", "export"])
def test_the_next_start_removes_what_a_killed_one_left(
    tmp_path: Path, program: str, digits_directory: Path, request: pytest.FixtureRequest
) -> None:
    folder, out = tmp_path / "outputs", tmp_path / "outputs" / "out"
    folder.mkdir()
    # A folder of the user that looks almost like it.
    (folder / ".out.backup.partial").mkdir()
    if program == "prepare":
        random = np.random.default_rng(0)
        for number in range(300):
            path = tmp_path / "source" / f"class {number % 2}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (200, 200, 3), dtype=np.uint8)).save(path)
        words = [str(tmp_path / "source"), str(out)]
    else:
        trained = request.getfixturevalue("trained_directory")
        words = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained}", str(out)]
    assert run_until_it_publishes(tmp_path, f"trainer.{program}", *words) == -signal.SIGKILL
    assert (len(list(folder.glob(".out.*.partial"))), out.exists()) == (2, False)
    done = run_module(f"trainer.{program}", *words)
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(folder)) <= {".out.backup.partial", "out", "out.html"}
    assert list(out.iterdir())


def test_a_record_that_is_damaged_ends_a_run_with_one_line(digits_directory: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_directory, tmp_path / "data")
    (shard,) = (tmp_path / "data").glob("images-train.array_record-*")
    damage(shard, lambda data: data[:5000] + bytes([data[5000] ^ 0xFF]) + data[5001:])
    done = run_module(
        "trainer.task", f"--dataset={tmp_path / 'data'}", f"--checkpoint-directory={tmp_path / 'run'}", "--epochs=1"
    )
    assert done.returncode == 2, done.stderr
    assert f"error: shard {shard} is damaged (" in done.stderr
    assert "Traceback" not in done.stderr
    assert "hash mismatch" in done.stderr.splitlines()[-1]


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
