"""Whatever a step or a replica calls pip, the user's environment stays what it is."""

import ensurepip
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.processes.test_environments import make_wheel
from localvertex_tests.support.own_environment import users_environment

from localvertex._base.userinput import temporary
from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import STEP, Execute, FindTask

LOOK = "python3 -c 'import tinypkg; print(\"found\", tinypkg.VERSION)' && tiny-program"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid pip to use an index, and to change an environment that is not virtual if a test fails."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")


@pytest.fixture
def execute(execute: Execute) -> Execute:
    """Run container commands without a sandbox, in which nothing but the step's folder can be changed at all."""
    return partial(execute, containers=ContainerOptions(allow_host_commands=True))


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    return make_wheel(tmp_path, "1.0")


@pytest.fixture(scope="module", autouse=True)
def unchanged() -> Iterator[None]:
    """Compare the user's environment before and after the tests of this file."""
    before = users_environment()
    yield
    assert users_environment() == before


def container(*command: str) -> Any:
    @dsl.container_component
    def call() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="python:3.11", command=[command[0]], args=list(command[1:]))

    @dsl.pipeline(name="calls")
    def calls() -> None:
        call()

    return calls


def job(command: list[str], args: list[str]) -> Any:
    @dsl.pipeline(name="calls")
    def calls() -> None:
        pool = {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": {"image_uri": "python:3.11", "command": command, "args": args},
        }
        CustomTrainingJobOp(display_name="call", worker_pool_specs=[pool])

    return calls


def logs(record: dict[str, Any], work_dir: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((work_dir / record["run_id"]).rglob("*.*")) if is_log(path))


def is_log(path: Path) -> bool:
    return path.name == "log.txt" or path.suffix == ".log"


SHELLS = {
    "pip": "pip install {wheel} && " + LOOK,
    "pip3": "pip3 install -q {wheel} && " + LOOK,
    "python -m pip": "python -m pip install {wheel} && " + LOOK,
    "python3 -P": "python3 -m pip install {wheel} && cd / && " + LOOK,
    "from_local_script": "pip install --upgrade pip && pip3 install -q --user {wheel} && " + LOOK,
    "new pip": "pip install --upgrade --force-reinstall --no-deps {pip} && pip3 install {wheel} && " + LOOK,
    "twice": "pip install {wheel} & python3 -m pip install {wheel} & wait && " + LOOK,
    "no pip": "python3 -m ensurepip --upgrade && pip install {wheel} && " + LOOK,
    "the user's own program": "{python} -m pip install {wheel} && " + LOOK,
    "a function of pip": 'python3 -c \'import sys, pip; sys.exit(pip.main(["install", "{wheel}"]))\' && ' + LOOK,
    "with a target": "PIP_TARGET={target} PIP_USER=1 pip install {wheel} && " + LOOK,
    "an environment of the step": "python3 -m venv own && . own/bin/activate && pip install {wheel} && " + LOOK,
    "settings": "pip config set global.timeout 7 && pip config --user set global.retries 1 && pip install {wheel} && "
    + LOOK,
    "settings of the module": "python3 -m pip config set global.retries 1 && pip config get global.retries && "
    "python3 -m pip config --site get global.retries && pip install {wheel} && " + LOOK,
}


REPLICA = ("pip", "from_local_script", "new pip")


USUAL = (("step", "pip"), ("replica", "from_local_script"))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), USUAL)
def test_pip_in_a_shell(execute: Execute, work_dir: Path, wheel: str, form: str, kind: str, tmp_path: Path) -> None:
    (bundled,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    target = tmp_path / "target"
    script = SHELLS[form].format(wheel=wheel, pip=bundled, python=sys.executable, target=target)
    pipeline = container("sh", "-ec", script) if kind == "step" else job(["sh", "-c"], [script])
    record = execute(pipeline)
    text = logs(record, work_dir)
    assert record["state"] == "SUCCEEDED", text
    assert "found 1.0\ntiny 1.0" in text
    assert not target.exists()


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "form"),
    sorted({*(("step", form) for form in SHELLS), *(("replica", form) for form in REPLICA)} - set(USUAL)),
)
def test_pip_in_a_shell_in_another_form(
    execute: Execute, work_dir: Path, wheel: str, form: str, kind: str, tmp_path: Path
) -> None:
    test_pip_in_a_shell(execute, work_dir, wheel, form, kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("step", ["pip"]),
        pytest.param("step", ["python3", "-m", "pip"], marks=pytest.mark.soak),
        pytest.param("replica", ["pip3"], marks=pytest.mark.soak),
        pytest.param("replica", ["python", "-m", "pip"], marks=pytest.mark.soak),
        ("replica", [sys.executable, "-m", "pip"]),
    ],
)
def test_pip_as_the_command(execute: Execute, work_dir: Path, wheel: str, words: list[str], kind: str) -> None:
    arguments = ["install", wheel]
    record = execute(container(*words, *arguments) if kind == "step" else job(words, arguments))
    text = logs(record, work_dir)
    assert record["state"] == "SUCCEEDED", text
    assert "Successfully installed tinypkg-1.0" in text


@dsl.component(**STEP)
def install_and_use(wheel: str) -> str:
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "pip", "install", wheel], check=True)
    import tinypkg

    program = subprocess.run(["tiny-program"], capture_output=True, text=True, check=True)
    removed = subprocess.run(["pip", "uninstall", "-y", "kfp"], capture_output=True, text=True)
    return f"{tinypkg.VERSION} {program.stdout.strip()} {removed.returncode}"


@dsl.component(**STEP)
def look() -> str:
    import importlib.util
    import os

    return f"{importlib.util.find_spec('tinypkg')} {'LOCALVERTEX_STEP' in os.environ}"


@dsl.pipeline(name="components")
def components(wheel: str) -> None:
    look().after(install_and_use(wheel=wheel).set_caching_options(False))


def test_pip_in_a_component_and_the_next_component_without(
    execute: Execute, task: FindTask, wheel: str, work_dir: Path
) -> None:
    record = execute(components, {"wheel": wheel})
    assert record["state"] == "SUCCEEDED", logs(record, work_dir)
    assert task(record, "install-and-use")["outputs"]["parameters"]["Output"] == "1.0 tiny 1.0 0"
    assert task(record, "look")["outputs"]["parameters"]["Output"] == "None True"


@pytest.mark.slow
def test_a_step_with_variables_and_packages_keeps_both(execute: Execute, task: FindTask, wheel: str) -> None:
    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], install_kfp_package=False)
    def both(second: str) -> str:
        import os
        import subprocess
        import sys

        subprocess.run([sys.executable, "-m", "pip", "install", "--upgrade", second], check=True)
        seen = subprocess.run([sys.executable, "-c", "import tinypkg; print(tinypkg.VERSION)"], capture_output=True)
        return f"{seen.stdout.decode().strip()} {os.environ['PYTHONPATH'].endswith(':/mine')}"

    @dsl.pipeline(name="both")
    def pipeline(second: str) -> None:
        both(second=second).set_env_variable("PYTHONPATH", "/mine").set_caching_options(False)

    second = make_wheel(Path(wheel).parent, "2.0")
    for _ in range(2):
        record = execute(pipeline, {"second": second})
        assert task(record, "both")["outputs"]["parameters"]["Output"] == "2.0 True"
    environments = Path(record["work_dir"]) / ".localvertex" / "environments"
    assert not list(environments.rglob("tinypkg-2.0.dist-info"))


def test_another_environment_named_to_pip_is_refused(execute: Execute, work_dir: Path, wheel: str) -> None:
    record = execute(container("sh", "-ec", f"pip --python {sys.executable} install {wheel}"))
    assert record["state"] == "FAILED"
    assert "pip --python installs into another environment" in record["error"]


@pytest.mark.slow
def test_nothing_of_it_is_left(execute: Execute, wheel: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    for pipeline in (container("pip", "install", wheel), job(["pip"], ["install", wheel])):
        assert execute(pipeline)["state"] == "SUCCEEDED"
    # The folder above all temporary ones of this user stays, as a sticky name that nobody else can take.
    assert {*(tmp_path / "tmp").rglob("localvertex-*")} <= {Path(temporary.parent())}
