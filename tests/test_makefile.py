"""The Makefile on a clone without `.venv`: its messages when it cannot continue."""

import pathlib
import shutil
import subprocess

import pytest


@pytest.fixture
def clone(repository: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the files that `make venv` reads."""
    shutil.copytree(repository / "requirements", tmp_path / "requirements")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    return tmp_path


def make(clone: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=clone, capture_output=True, text=True)


@pytest.mark.parametrize("target", ["demo", "test", "venv", "check"])
def test_a_missing_python_is_reported_in_one_line_with_exit_code_2(clone: pathlib.Path, target: str) -> None:
    done = make(clone, target, "PYTHON=/nonexistent/python3.9")
    assert done.returncode == 2
    assert "found no Python 3.11, 3.12 or 3.13" in done.stderr
    assert len((done.stdout + done.stderr).strip().splitlines()) == 1
    assert not (clone / ".venv").exists()


def test_a_python_that_is_too_old_is_not_used(clone: pathlib.Path) -> None:
    old = clone / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert make(clone, "demo", f"PYTHON={old}").returncode == 2


def test_help_lists_every_target(clone: pathlib.Path) -> None:
    done = make(clone)
    assert done.returncode == 0
    for target in ("demo", "test", "check", "compile", "venv"):
        assert f"make {target} " in done.stdout


def test_the_target_of_a_link_is_not_emptied(clone: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "kept").touch()
    (clone / ".venv").symlink_to(other)
    done = make(clone, "venv")
    assert (done.returncode, done.stdout) == (2, "")
    assert ".venv is a link" in done.stderr
    assert (other / "kept").exists()
