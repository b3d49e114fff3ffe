"""The progress of a run on a terminal."""

import sys
from pathlib import Path

from kfp import dsl

from vertex_testing.runs import STEP, Compile
from vertex_testing.terminal import Terminal


@dsl.component(**STEP)
def measure(text: str) -> int:
    return len(text)


@dsl.pipeline(name="measuring")
def measuring(text: str = "abc") -> None:
    measure(text=text)


def test_the_live_view_draws_on_a_terminal(compiled: Compile, tmp_path: Path) -> None:
    compiled(measuring)
    words = [sys.executable, "-m", "localvertex", "run", "pipeline.json", "--run-id", "live"]
    terminal = Terminal(words, width=100, cwd=tmp_path)
    assert terminal.end() == 0
    text = terminal.written.decode()
    assert "measure" in text
    assert "SUCCEEDED" in text
    assert "\x1b[?25h" in text, "the cursor is shown again"
