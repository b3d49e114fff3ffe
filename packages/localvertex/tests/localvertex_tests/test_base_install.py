"""A base install has PyYAML alone: every command says which extra to install."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def base_install(package: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment of an interpreter that finds this project and PyYAML only."""
    site = tmp_path / "site"
    site.mkdir()
    folder = Path(yaml.__file__).parent
    for each in (folder, folder.with_name("_yaml")):
        if each.exists():
            (site / each.name).symlink_to(each)
    return os.environ | {"PYTHONPATH": f"{package}{os.pathsep}{site}"}


@pytest.mark.parametrize(
    "words",
    [
        *(["list"], ["show", "latest"], ["logs", "latest"], ["clean"], ["run", "p.json"], ["prove", "p.json"]),
        *(["serve"], ["init"]),
    ],
)
def test_the_extra_is_named_instead_of_a_traceback(
    base_install: dict[str, str], package: Path, tmp_path: Path, words: list[str]
) -> None:
    command = [sys.executable, "-S", "-m", "localvertex", *words]
    done = subprocess.run(command, cwd=tmp_path, env=base_install, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: localvertex needs ")
    _, _, advice = done.stderr.strip().partition("; run ")
    assert shlex.split(advice) == [sys.executable, "-m", "pip", "install", "-e", f"{package}[run]"]
    assert done.stderr.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"]])
def test_the_help_needs_no_extra(base_install: dict[str, str], tmp_path: Path, words: list[str]) -> None:
    command = [sys.executable, "-S", "-m", "localvertex", *words]
    done = subprocess.run(command, cwd=tmp_path, env=base_install, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
