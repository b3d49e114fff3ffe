"""Every list of the product's packages has all packages that exist, and no others."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipelines.project.container_image import image_files


@pytest.fixture(scope="module")
def packages(repository: Path) -> set[str]:
    """The top-level packages of the product."""
    found = {path.parent.name for path in repository.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert "trainer" in found
    return found


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((repository / "pyproject.toml").read_text())


def copied(repository: Path) -> set[str]:
    """What the Dockerfile copies from the build context."""
    lines = re.findall(r"^COPY (.+) \S+$", (repository / "Dockerfile").read_text(), re.M)
    return {name for line in lines for name in line.split()}


def sent(repository: Path) -> set[str]:
    """What .dockerignore lets into the build context."""
    lines = (repository / ".dockerignore").read_text().splitlines()
    assert lines[0] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_the_dockerfile_copies_what_is_sent(repository: Path, packages: set[str]) -> None:
    assert copied(repository) == sent(repository)
    assert packages <= sent(repository)
    assert [name for name in sent(repository) if not (repository / name).exists()] == []


def test_no_other_folder_is_sent(repository: Path, packages: set[str]) -> None:
    assert {name for name in sent(repository) if (repository / name).is_dir()} == packages


def test_the_tag_of_the_image_follows_every_file_of_it(repository: Path) -> None:
    files = image_files()
    assert len(files) == len(set(files))
    assert set(files) == sent(repository) | {"Dockerfile", ".dockerignore", "cloudbuild.yaml"}


def test_all_packages_are_installed(project: dict[str, Any], packages: set[str]) -> None:
    assert set(project["tool"]["setuptools"]["packages"]["find"]["include"]) == {f"{name}*" for name in packages}


def test_mypy_and_ruff_know_all_packages(project: dict[str, Any], packages: set[str]) -> None:
    checked = set(project["tool"]["mypy"]["files"])
    assert packages <= checked
    assert {name for name in checked if not name.endswith(".py")} <= packages | {"benchmarks", "tests"}
    assert set(project["tool"]["ruff"]["lint"]["isort"]["known-first-party"]) == packages | {"cloud", "compile"}
