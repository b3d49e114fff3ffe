"""Advice about an extra: the command works, and no text names a package that may be another project's in an index."""

import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

CODE = "from localvertex._base.extras import install; print(install('serve'))"
OFFLINE = ("--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--quiet")


def advice(folder: Path) -> str:
    """Return the advice of a program that has only this folder, and the standard library."""
    words = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {CODE}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    return line


def command(text: str) -> list[str]:
    """Return the words of the command in an advice, after they have worked, without a network."""
    words = shlex.split(text.removeprefix("run "))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    done = subprocess.run([*words, *OFFLINE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return words[4:]


@pytest.fixture(scope="module")
def checkout(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, in a folder whose name has a space."""
    copy, unused = tmp_path_factory.mktemp("extras") / "a copy", (".*", "build", "tests", "docs", "__pycache__")
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns(*unused, "node_modules"))
    return copy


@pytest.fixture(scope="module")
def site(checkout: Path) -> Path:
    """Return a folder in which pip installed the wheel of the copy, and wheels/ beside it."""
    pip, offline = [sys.executable, "-m", "pip"], ("--quiet", "--no-deps", "--no-index")
    wheels, target = checkout.parent / "wheels", checkout.parent / "site-packages"
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", wheels, checkout], check=True)
    subprocess.run([*pip, "install", *offline, "--target", target, *wheels.glob("*.whl")], check=True)
    return target


def test_in_the_repository_it_is_the_command_for_this_folder(checkout: Path) -> None:
    assert command(advice(checkout)) == ["-e", f"{checkout}[serve]"]


@pytest.mark.slow
def test_an_installed_package_names_what_the_extra_requires(site: Path, package: Path) -> None:
    expected = advice(site)
    extras = tomllib.loads((package / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [*map(Requirement, command(expected))] == [*map(Requirement, extras["serve"])]
    # A pyproject.toml that another package left beside the modules.
    (site / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    assert advice(site) == expected
