"""The README's commands are the real ones, and so is the output it shows."""

import pathlib
import re
import shlex
import subprocess

import pytest

from tests.e2e.conftest import Run

pytestmark = pytest.mark.slow


def blocks(page: pathlib.Path) -> list[list[str]]:
    """Return the lines of each fenced block that starts with a prompt."""
    found = re.findall(r"^```[a-z]*\n(\$ .*?)^```$", page.read_text(), flags=re.M | re.S)
    return [block.splitlines() for block in found]


def shape(line: str) -> str:
    """Return a line with its numbers, paths and run ids taken out."""
    line = re.sub(r"\S*/runs\d*/", "runs/", line)
    line = re.sub(r"\d+(\.\d+)?", "N", line)
    return " ".join(line.split())


def test_the_demo_prints_what_the_readme_shows(repository: pathlib.Path, demo: Run) -> None:
    (block,) = [block for block in blocks(repository / "README.md") if block[0] == "$ make demo"]
    printed = [shape(line) for line in demo.output.splitlines()]
    shown = [shape(line) for line in block[1:] if line.strip()]
    assert len(shown) > 20
    assert [line for line in shown if line not in printed] == []


def test_every_other_command_of_the_readme_runs(
    repository: pathlib.Path, python: str, demo: Run, work_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ran = []
    for block in blocks(repository / "README.md"):
        for line in block:
            if not line.startswith("$ ") or line.startswith("$ make"):
                continue  # the make targets are what CI itself calls
            words = shlex.split(line.removeprefix("$ "))
            assert words[0] == ".venv/bin/python", line
            known = {"MODEL_DIR": demo.artifact("export", "model")["uri"], "PICTURE": _picture(tmp_path)}
            words = [python, *(known.get(word, word) for word in words[1:])]
            if "localvertex" in words:
                words += ["--work-dir", str(work_dir)]
            done = subprocess.run(words, cwd=repository, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            ran.append(line)
    assert len(ran) >= 4


def _picture(folder: pathlib.Path) -> str:
    from PIL import Image

    path = folder / "picture.png"
    Image.new("RGB", (40, 30), "white").save(path)
    return str(path)
