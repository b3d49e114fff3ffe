"""Every benchmark runs from start to end with `--smoke`; its figures mean nothing then."""

import pathlib
import subprocess
import sys

import pytest

BENCHMARKS = sorted(
    path.stem
    for path in (pathlib.Path(__file__).parents[1] / "benchmarks").glob("*.py")
    if "parse(" in path.read_text() and path.stem != "measuring"
)


def test_every_benchmark_of_the_page_can_be_tried(repository: pathlib.Path) -> None:
    page = (repository / "benchmarks" / "README.md").read_text()
    assert [name for name in BENCHMARKS if f"| `python -m benchmarks.{name}` |" not in page] == []
    assert page.count("| `python -m benchmarks.") == len(BENCHMARKS) + page.count("| `python -m benchmarks.soak")


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_with_tiny_sizes_prints_the_machine_and_processor_time(repository: pathlib.Path, name: str) -> None:
    words = [sys.executable, "-m", f"benchmarks.{name}", "--smoke"]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    machine, *lines = done.stdout.splitlines()
    assert "load average" in machine
    assert any("processor" in line for line in lines)
