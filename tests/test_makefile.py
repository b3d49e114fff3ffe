"""The Makefile on a clone without `.venv`: its messages when it cannot continue."""

import pathlib
import shutil
import subprocess

import pytest


@pytest.fixture
def clone(repository: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the files that `make venv` reads."""
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(repository / "requirements", tmp_path / "requirements")
    scripts = pathlib.Path("packages", "localvertex", "requirements")
    shutil.copytree(repository / scripts, tmp_path / scripts, ignore=ignored)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    return tmp_path


def make(clone: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=clone, capture_output=True, text=True)


@pytest.mark.parametrize("target", ["demo", "test", "venv", "venv-beam", "venv-gpu", "venv-torch", "check"])
def test_a_missing_python_is_reported_in_one_line_with_exit_code_2(clone: pathlib.Path, target: str) -> None:
    done = make(clone, target, "PYTHON=/nonexistent/python3.9")
    assert done.returncode == 2
    assert "found no Python 3.11, 3.12 or 3.13" in done.stderr
    assert len((done.stdout + done.stderr).strip().splitlines()) == 1
    assert not list(clone.glob(".venv*"))


def test_a_python_that_is_too_old_is_not_used(clone: pathlib.Path) -> None:
    old = clone / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert make(clone, "demo", f"PYTHON={old}").returncode == 2


def test_help_lists_every_target(clone: pathlib.Path) -> None:
    done = make(clone)
    assert done.returncode == 0
    for target in ("demo", "test", "soak", "rows", "check", "compile", "venv", "venv-beam", "venv-gpu", "venv-torch"):
        assert f"make {target} " in done.stdout


def program(path: pathlib.Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def checked(clone: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run `make check` with a Python that finds nothing wrong, and the programs in `bin`."""
    (clone / "bin").mkdir(exist_ok=True)
    program(clone / ".venv" / "bin" / "python")
    (clone / ".venv" / "ready").touch()
    for name in ("touch", "mkdir", "chmod"):
        (clone / "bin" / name).symlink_to(str(shutil.which(name)))
    words, environment = [str(shutil.which("make")), "check"], {"PATH": str(clone / "bin")}
    return subprocess.run(words, cwd=clone, capture_output=True, text=True, env=environment)


def test_without_npm_the_check_says_that_scripts_are_not_checked(clone: pathlib.Path) -> None:
    done = checked(clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "npm was not found: the scripts of the console are not checked\n"


@pytest.mark.parametrize("failing", ["tsc", "biome", ""])
def test_with_npm_a_wrong_script_fails_the_check(clone: pathlib.Path, failing: str) -> None:
    tools = "".join(
        f"echo 'exit {int(name == failing)}' > node_modules/.bin/{name}; chmod +x node_modules/.bin/{name}; "
        for name in ("tsc", "biome")
    )
    program(clone / "bin" / "npm", f"[ $1 = ci ] && mkdir -p node_modules/.bin && {tools}")
    assert (checked(clone).returncode == 0) is (failing == "")


@pytest.mark.parametrize("name", ["venv", "venv-beam", "venv-gpu", "venv-torch"])
def test_the_target_of_a_link_is_not_emptied(
    clone: pathlib.Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "kept").touch()
    (clone / f".{name}").symlink_to(other)
    done = make(clone, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert f".{name} is a link" in done.stderr
    assert (other / "kept").exists()
