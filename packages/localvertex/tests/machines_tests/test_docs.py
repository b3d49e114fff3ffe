"""The commands of docs/machines.md and docs/convert.md, run as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from machines_tests.conftest import DATA, ROOT

PAGES = ("machines.md", "convert.md")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [content for kind, content in fences if kind == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the pages show, and a compiled pipeline."""
    for page in PAGES:
        for content in blocks(page, "yaml"):
            (name,) = re.findall(r"\A# (\S+)\n", content)
            (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "pipeline.json").write_bytes((DATA / "pipelines" / "planned.json").read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # The folder of sys.executable comes first: a link to the interpreter of a virtual environment loses its packages.
    path = f"{os.path.dirname(sys.executable)}:{folder / 'bin'}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, env=env, timeout=300, check=False
    )


@pytest.mark.parametrize("page", PAGES)
def test_commands(folder: Path, page: str) -> None:
    """Every command runs; its exit code is 0, or 1 for findings and open decisions."""
    scripts = [block for block in blocks(page, "") if not block.startswith("$ ")]
    assert len(scripts) >= 3
    for script in scripts:
        done = run(script, folder)
        assert done.returncode in (0, 1), (script, done.stderr)
        assert "Traceback" not in done.stderr, script


def test_shown_output_is_the_real_one(folder: Path) -> None:
    (shown,) = [block for block in blocks("machines.md", "") if block.startswith("$ ")]
    command, _, output = shown.removeprefix("$ ").partition("\n")
    assert run(command, folder).stdout == output


def test_python_example(folder: Path) -> None:
    (first,) = blocks("machines.md", "python")
    script = folder / "example.py"
    script.write_text(first, "utf-8")
    done = run("python example.py", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("error accelerator-count 2 x NVIDIA_L4 on g2-standard-8")


def test_own_tables_change_the_verdict(folder: Path) -> None:
    (script,) = [block for block in blocks("machines.md", "") if "my-tables" in block]
    done = run(script, folder)
    assert done.stdout.count("0 errors") == 1
