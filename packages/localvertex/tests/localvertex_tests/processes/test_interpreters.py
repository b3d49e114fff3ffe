"""The Python of a step's base image, where it is installed here; nothing is downloaded."""

import sys
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.processes.test_environments import make_old_kfp, make_wheel

from localvertex._base.userinput.errors import UserError
from localvertex.containers.stand_ins import StandIns
from localvertex.executors.python_step import MODULE
from localvertex.processes import interpreters
from localvertex.processes.interpreters import OWN
from localvertex.values import configuration
from vertex_testing.runs import Compile, Execute, FindTask


@pytest.fixture
def managers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the empty folders of pyenv and uv of a user without other interpreters."""
    pyenv, uv = tmp_path / "pyenv", tmp_path / "uv"
    for name, text in {"PYENV_ROOT": pyenv, "UV_PYTHON_INSTALL_DIR": uv, "PATH": tmp_path / "bin"}.items():
        monkeypatch.setenv(name, str(text))
    return pyenv, uv


def install(path: Path, program: str = f'exec {sys.executable} "$@"') -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return path


def test_an_interpreter_is_found_where_pyenv_uv_and_the_system_have_it(
    managers: tuple[Path, Path], tmp_path: Path
) -> None:
    name = f"python{OWN.minor}"
    assert interpreters.find(OWN.minor) is None
    places = [
        tmp_path / "bin" / name,
        managers[1] / f"cpython-{OWN.minor}.2-linux-x86_64-gnu" / "bin" / name,
        managers[0] / "versions" / f"{OWN.minor}.10" / "bin" / name,
    ]
    for place in places:
        install(place)
        assert interpreters.named(OWN.minor).path == place
    # An older patch.
    install(managers[0] / "versions" / f"{OWN.minor}.9" / "bin" / name)
    assert interpreters.named(OWN.minor).path == places[-1]


def test_a_version_that_is_not_here_is_refused_with_what_installs_it(
    managers: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_text('[image."python:3.8"]\npython = "3.8"\n[packages]\npython = "3.8"\n')
    install(tmp_path / "bin" / "python3.8", "echo pyenv: python3.8: command not found >&2; exit 127")
    with pytest.raises(UserError, match="Python 3.8 is not installed here.*pyenv install 3.8"):
        StandIns(configuration.read(file))


def learning(image: str, *packages: str) -> Any:
    @dsl.component(base_image=image, kfp_package_path="kfp==2.0.1", packages_to_install=[*packages])
    def learn(n: int, data: dsl.Output[dsl.Dataset]) -> str:
        import platform

        import pkg_resources
        import tinypkg

        return f"{platform.python_version()} {tinypkg.VERSION} {pkg_resources.__name__}"

    @dsl.pipeline(name="learns")
    def learns() -> None:
        learn(n=1)

    return learns


@pytest.mark.slow
def test_a_step_with_pins_runs_in_the_python_of_its_image_and_with_the_setuptools_of_that(
    compiled: Compile, execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [each for each in interpreters.others() if each.minor < "3.12"]
    if not others:
        pytest.skip("there is one Python alone")
    make_wheel(tmp_path, "1.5")
    make_old_kfp(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    def version(image: str, *packages: str) -> str:
        file = compiled(learning(image, *packages), "learns.yaml")
        file.write_text(file.read_text().replace(MODULE, "kfp.components.executor_main"))
        record = execute(file)
        assert record["state"] == "SUCCEEDED", record["error"]
        return str(task(record, "learn")["outputs"]["parameters"]["Output"])

    python = others[0]
    assert version(f"python:{python.minor}-slim", "tinypkg==1.5") == f"{python.version} 1.5 pkg_resources"
    # What this Python can have as well stays in it, with the user's packages.
    assert version(f"python:{python.minor}", "tinypkg") == f"{OWN.version} 1.5 pkg_resources"
