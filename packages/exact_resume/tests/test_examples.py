"""The examples: killed and stopped at any step, each ends with the same bits, after the same examples per step."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from exact_resume.checkpoints import result_file

EXAMPLES = Path(__file__).parents[1] / "examples"
MAX_LINES = 100


def seen(folder: Path) -> dict[int, str]:
    """Return the examples of each step; a step that was repeated had the same ones."""
    found: dict[int, str] = {}
    for line in folder.with_name(f"{folder.name}.seen").read_text().splitlines():
        step, _, examples = line.partition(" ")
        assert found.setdefault(int(step), examples) == examples
    return found


@pytest.mark.parametrize(
    ("name", "modules", "faults"),
    [
        ("numpy_softmax.py", "", ["__next__:437:9", "__next__:612:15", "__next__:999:9"]),
        pytest.param(
            "sklearn_table.py",
            "sklearn",
            ["__next__:137:9", "__next__:301:15"],
            marks=[pytest.mark.slow, pytest.mark.soak],
            id="sklearn",
        ),
        # The last step of an epoch, with its validation, is 30 steps after that of the one before.
        pytest.param(
            "keras_fit.py",
            "keras,tensorflow,sklearn",
            ["__next__:41:9", "__next__:74:15", "evaluation:119:9", "evaluation:149:15"],
            marks=pytest.mark.slow,
            id="keras",
        ),
    ],
)
def test_an_example_ends_as_without_interruption(name: str, modules: str, faults: list[str], tmp_path: Path) -> None:
    for module in filter(None, modules.split(",")):
        pytest.importorskip(module)
    script = Path(__file__).with_name("disturbed.py")
    words = [sys.executable, str(script), str(EXAMPLES / name), modules, str(tmp_path), *faults]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    whole, *ended, disturbed, _ = re.split(r"^exit (.*)\n", done.stdout, flags=re.M)[::2]
    codes = [int(code) for code in re.findall(r"^exit (.*)$", done.stdout, re.M)]
    signals = [int(fault.rpartition(":")[2]) for fault in faults]
    assert codes == [0, *(-9 if number == 9 else 128 + number for number in signals), 0], done.stderr
    assert re.fullmatch(r"[0-9a-f]{64}", whole.splitlines()[-1])
    assert disturbed.splitlines()[-1] == whole.splitlines()[-1]
    assert whole.splitlines()[-1] not in "".join(ended)
    assert seen(tmp_path / "disturbed") == seen(tmp_path / "whole")
    results = [result_file.read_result(str(tmp_path / each)) or {} for each in ("whole", "disturbed")]
    assert results[0]["metrics"] == results[1]["metrics"]
    assert [each["num_restarts"] for each in results] == [0, len(faults)]


def test_examples_are_short() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lines
    assert max(lines.values()) < MAX_LINES
