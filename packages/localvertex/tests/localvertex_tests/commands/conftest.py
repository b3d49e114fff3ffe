"""pytest sessions of another repository, in processes, with the plugin found as an installation finds it."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

Session = Callable[..., subprocess.CompletedProcess[str]]
"""Takes arguments of pytest; runs it in the folder `repository` of the test."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty repository whose tests take warnings for errors."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n")
    return folder


@pytest.fixture
def session(package: Path, repository: Path, tmp_path: Path) -> Session:
    """Run pytest there; the entry points are those of pyproject.toml, whatever is installed here."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [f"{name} = {value}" for name, value in project["entry-points"]["pytest11"].items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    paths = [str(metadata.parent), str(package), os.environ.get("PYTHONPATH", "")]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "120", "PYTEST_ADDOPTS": ""}

    def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", f"--basetemp={tmp_path / 'temporary'}", *map(str, words)]
        environment = os.environ | variables | more
        return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=240)

    return run
