"""The list of runs at any width: ids and states are whole, with the main metric and the parameters that differ."""

import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl
from rich.cells import cell_len

from vertex_testing.runs import STEP, Command, Compile
from vertex_testing.terminal import Terminal

IDS = {
    "a-run-whose-id-has-sixty-three-characters-like-some-that-are-used": ("0.1", "one"),
    "second": ("0.25", "one"),
}


@dsl.component(**STEP)
def train(rate: float, metrics: dsl.Output[dsl.Metrics]) -> None:
    if rate < 0:
        raise ValueError("a negative rate")
    metrics.log_metric("loss", 3.0)
    metrics.log_metric("test_accuracy", rate)


@dsl.pipeline(name="trains")
def trains(rate: float, same: str, note: str = "") -> None:
    train(rate=rate)


@pytest.fixture
def listed(compiled: Compile, command: Command, tmp_path: Path) -> Path:
    """A work folder with runs that differ in one parameter, and a folder that is not a run."""
    file = compiled(trains)
    for run_id, (rate, same) in IDS.items():
        done = command("run", file, "--run-id", run_id, "-p", f"rate={rate}", "-p", f"same={same}")
        assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


@pytest.mark.parametrize("width", [190, 80, 60, 20])
def test_ids_and_states_are_whole_on_a_terminal(listed: Path, width: int) -> None:
    terminal = Terminal([sys.executable, "-m", "localvertex", "list"], width=width, cwd=listed)
    assert terminal.end() == 0
    assert "…" not in terminal.text
    for run_id, (rate, _) in IDS.items():
        (number,) = [n for n, line in enumerate(terminal.lines) if line.split()[:1] == [run_id]]
        own = " ".join(terminal.lines[number : number + 12])
        assert own.index("SUCCEEDED") < own.index(f"test_accuracy {rate}") < own.index(f"rate={rate}")
    assert "same=" not in terminal.text
    assert "note=" not in terminal.text
    if width >= 60:
        assert {line for line in terminal.lines if cell_len(line) > width} <= set(IDS), "an id that is itself longer"


def test_each_run_is_one_line_with_its_own_parameters_and_the_reason_of_its_failure(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    file = compiled(trains)
    notes = {"common-1": "usual", "common-2": "usual", "common-3": "usual", "long": "x" * 50, "broken": "y"}
    for run_id, note in notes.items():
        rate = "-1.0" if run_id == "broken" else "0.5"
        words = [word for each in (f"rate={rate}", "same=s", f"note={note}") for word in ("-p", each)]
        assert command("run", file, "--run-id", run_id, *words).returncode == int(run_id == "broken")
    terminal = Terminal([sys.executable, "-m", "localvertex", "list"], width=80, cwd=tmp_path)
    assert terminal.end() == 0
    head, *lines = [line for line in terminal.lines if line.strip()]
    assert [line.split()[0] for line in lines] == [*reversed(notes)]
    assert max(map(cell_len, [head, *lines])) <= 80
    broken, long, *common = lines
    assert "note=y" in broken
    assert "  train: exit code 1" in broken
    assert long.endswith(f"test_accuracy 0.5  note={'x' * 17}...")
    # What most runs have in common is not repeated.
    assert not any("note=" in line for line in common)


def test_without_a_terminal_each_run_is_one_line(listed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localvertex", "list"], cwd=listed, capture_output=True, text=True, check=True
    )
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["run", "state", "seconds", "result", "started", "pipeline"]
    assert [line.split()[0] for line in lines] == ["second", next(iter(IDS))]
    assert [line.split()[-1] for line in lines] == ["rate=0.25", "rate=0.1"]
