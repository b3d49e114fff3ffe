"""A start of another run in the folder of a live one is refused before it writes, takes or removes anything."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.lease import Lease
from exact_resume.events import log as event_log
from tests.support.modules import run_module, start_module

pytestmark = pytest.mark.slow
FLAGS = ["--epochs=12", "--global-batch-size=32", "--checkpoint-every-steps=4"]
EVALUATOR = {
    "TF_CONFIG": json.dumps({"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}})
}


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start a module that does not outlive the test."""
    with contextlib.ExitStack() as stack:

        def call(*words: str) -> "subprocess.Popen[str]":
            process = stack.enter_context(start_module(*words))
            stack.callback(process.kill)
            return process

        yield call


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_mistaken_start_changes_nothing_and_the_live_run_ends_well(
    start: Callable[..., "subprocess.Popen[str]"], digits_directory: Path, tmp_path: Path
) -> None:
    folder, board = tmp_path / "run", tmp_path / "board"
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", *FLAGS]
    live = start("trainer.task", *arguments)
    deadline = time.monotonic() + 300
    while not checkpoints.steps(str(folder)):
        assert time.monotonic() < deadline
        assert live.poll() is None
        time.sleep(0.02)
    # Frozen, so that every change is the intruder's.
    live.send_signal(signal.SIGSTOP)
    before = content(folder)
    for environment in ({}, EVALUATOR):
        done = run_module("trainer.task", *arguments, "--seed=3", AIP_TENSORBOARD_LOG_DIR=str(board), **environment)
        assert done.returncode == 2, done.stderr
        assert "seed is 0 there and 3 here" in done.stderr
    assert (content(folder), board.exists()) == (before, False)
    live.send_signal(signal.SIGCONT)
    _, stderr = live.communicate(timeout=300)
    assert live.returncode == 0, stderr
    assert sum(event["event"] == "start" for event in event_log.read(str(folder))) == 1


def test_a_live_run_is_protected_before_its_first_checkpoint(digits_directory: Path, tmp_path: Path) -> None:
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path}", "--max-steps=1"]
    Lease(str(tmp_path)).take({"seed": 5})
    before = content(tmp_path)
    done = run_module("trainer.task", *arguments)
    assert done.returncode == 2, done.stderr
    assert "contains another run: " in done.stderr
    assert content(tmp_path) == before
