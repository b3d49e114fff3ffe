"""The progress of a run on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from kfp import dsl

from localvertex.show.terminal.live import replica_state
from tests.support.runs import STEP, Compile


@dsl.component(**STEP)
def measure(text: str) -> int:
    return len(text)


@dsl.pipeline(name="measuring")
def measuring(text: str = "abc") -> None:
    measure(text=text)


def test_the_live_view_draws_on_a_terminal(compiled: Compile, tmp_path: Path) -> None:
    compiled(measuring)
    words = [sys.executable, "-m", "localvertex", "run", "pipeline.json", "--run-id", "live"]
    parent, child = pty.openpty()
    process = subprocess.Popen(words, cwd=tmp_path, stdout=child, stderr=child, env=os.environ | {"TERM": "xterm"})
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait() == 0
    text = shown.decode()
    assert "measure" in text
    assert "SUCCEEDED" in text
    assert "\x1b[?25h" in text, "the cursor is shown again"


def test_the_live_view_shows_each_replica() -> None:
    running = {"name": "workerpool1-0", "is_running": True, "num_starts": 2, "exit_code": 9, "step": 3, "num_steps": 9}
    assert replica_state(running) == "step 3 of 9, start 2"
    assert replica_state(running | {"is_running": False}) == "exit code 9"
    assert replica_state(running | {"num_steps": 0, "num_starts": 1}) == "running"
