"""Every benchmark runs from start to end with `--smoke`, when its figures mean nothing; for soaks see test_soak.py."""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"
BENCHMARKS = sorted(
    [path.stem for path in FOLDER.glob("*.py") if "parse(" in path.read_text() and path.stem != "measuring"]
    + [path.parent.name for path in FOLDER.glob("*/__main__.py")]
)
LONG = (
    "checkpoint",
    "comparison",
    "compile_time",
    "gpu",
    "input",
    "near_duplicates",
    "prepare",
    "recipes",
    "scaling",
    "serving",
    "train",
)
"""They start many processes with TensorFlow, or compute for seconds, even with tiny sizes."""
ONLY_WITH_A_GPU = "error: TensorFlow sees no GPU here; --smoke tries the benchmark on the CPU\n"


def run(repository: pathlib.Path, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", f"benchmarks.{name}", *words]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=600, env=environment)


def test_every_benchmark_of_the_page_can_be_tried(repository: pathlib.Path) -> None:
    page = (repository / "benchmarks" / "README.md").read_text()
    assert [name for name in BENCHMARKS if f"| `python -m benchmarks.{name}` |" not in page] == []
    assert page.count("| `python -m benchmarks.") == len(BENCHMARKS) + page.count("| `python -m benchmarks.soak.")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] if name in LONG else []) for name in BENCHMARKS if name != "soak"],
)
def test_a_benchmark_with_tiny_sizes_prints_the_machine_and_processor_time(
    repository: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    words = [f"--output-dir={tmp_path}"] if name in ("gpu", "recipes") else []
    done = run(repository, name, "--smoke", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    machine, *lines = done.stdout.splitlines()
    assert "load average" in machine
    assert any("processor" in line for line in lines)
    if words:
        [table] = tmp_path.glob("*.md")
        assert "smoke" in table.read_text()


@pytest.mark.slow
def test_without_a_gpu_its_benchmark_is_refused_in_a_line(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run(repository, "gpu", f"--output-dir={tmp_path}")
    assert (done.returncode, done.stderr) == (2, ONLY_WITH_A_GPU)
    assert not list(tmp_path.iterdir())
