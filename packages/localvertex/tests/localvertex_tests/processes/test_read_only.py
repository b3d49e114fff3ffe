"""Steps and replicas with an environment of their own cannot change the user's packages in any way."""

import os
import signal
import site
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl
from localvertex_tests.processes.test_environments import make_wheel

from localvertex.processes import read_only
from vertex_testing.runs import Execute, FindTask

pytestmark = pytest.mark.skipif(not read_only.view(), reason="bubblewrap is not installed or cannot run")


def component(wheel: str) -> object:
    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], install_kfp_package=False)
    def touch(folder: str, own: str) -> str:
        import os
        import pathlib

        import tinypkg

        (pathlib.Path(own) / str(os.getpid())).touch()
        try:
            (pathlib.Path(folder) / "intruder.py").touch()
        except OSError as error:
            return f"{tinypkg.VERSION} {error.strerror}"
        return "written"

    return touch


def test_a_step_that_installs_packages_writes_only_its_own(
    execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    touch = component(make_wheel(tmp_path, "1.0"))
    packages = site.getsitepackages()[0]

    @dsl.pipeline(name="touches")
    def touches(folder: str, own: str) -> None:
        touch(folder=folder, own=own)  # type: ignore[operator]
        touch(folder=folder, own=own).set_env_variable("A", "b")  # type: ignore[operator]

    record = execute(touches, {"folder": packages, "own": str(tmp_path)})
    assert record["state"] == "SUCCEEDED", record["error"]
    for name in ("touch", "touch-2"):
        assert task(record, name)["outputs"]["parameters"]["Output"] == "1.0 Read-only file system"
    assert not (Path(packages) / "intruder.py").exists()
    assert len([each for each in tmp_path.iterdir() if each.name.isdigit()]) == 2


def test_a_command_in_the_view_gets_its_variables_and_its_signals() -> None:
    program = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
        "print(os.environ['A'], flush=True); signal.pause()"
    )
    words, env = read_only.prepared([sys.executable, "-c", program], {"A": "b"})
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "b\n"
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(timeout=60) == 7
