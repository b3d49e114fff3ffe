"""The commands of docs/accelerators.md and docs/convert.md, run as they stand there."""

import os
import re
import subprocess
import sys

import pytest

from tests.accelerators.conftest import DATA, ROOT

PAGES = ("accelerators.md", "convert.md")


def blocks(page, language):
    text = (ROOT / "docs" / page).read_text("utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [content for kind, content in fences if kind == language]


@pytest.fixture
def folder(tmp_path):
    """A folder as the pages assume it: the files they show, and a compiled pipeline."""
    for page in PAGES:
        for content in blocks(page, "yaml"):
            name = re.match(r"# (\S+)\n", content).group(1)
            (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "image_training.json").write_bytes((DATA / "pipelines" / "planned.json").read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def run(script, folder):
    # sys.executable's own folder first: a link to a virtual environment's interpreter forgets its packages.
    path = f"{os.path.dirname(sys.executable)}:{folder / 'bin'}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, env=env, timeout=60, check=False
    )


@pytest.mark.parametrize("page", PAGES)
def test_commands(folder, page):
    """It runs every command; none is unreadable, and what `check` and `convert` find is their exit code."""
    scripts = [block for block in blocks(page, "") if not block.startswith("$ ")]
    assert len(scripts) >= 4
    for script in scripts:
        done = run(script, folder)
        assert done.returncode in (0, 1), (script, done.stderr)
        assert "Traceback" not in done.stderr, script


def test_shown_output_is_the_real_one(folder):
    (shown,) = [block for block in blocks("accelerators.md", "") if block.startswith("$ ")]
    command, _, output = shown.removeprefix("$ ").partition("\n")
    assert run(command, folder).stdout == output


def test_python_example(folder):
    (first,) = blocks("accelerators.md", "python")
    script = folder / "example.py"
    script.write_text(first, "utf-8")
    done = run("python example.py", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("error accelerator-count 2 x NVIDIA_L4 on g2-standard-8")


def test_own_tables_change_the_verdict(folder):
    (script,) = [block for block in blocks("accelerators.md", "") if "my-tables" in block]
    done = run(script, folder)
    assert done.stdout.count("0 errors") == 2
