"""No step imports a module from the folder that localvertex was started in, whatever lies there."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from kfp.dsl import Dataset, Input
from localvertex_tests.processes.test_environments import make_wheel

from localvertex.containers.choice import Choice
from vertex_testing.runs import STEP, Compile

MODULES = ("components", "trainer", "pipelines", "json", "csv", "yaml", "kfp", "pip", "celpy", "jinja2", "mine")
"""Modules of a project, of Python and of others that lie in the start folder; `mine` lies nowhere else."""

LOOK = f"""\
import importlib
for name in {MODULES}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(error)
    else:
        assert name != "mine"
"""


@dsl.component(**STEP)
def look(program: str, data: Input[Dataset] = None) -> str:
    exec(program)
    return program


@dsl.container_component
def command(program: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["python3", "-c"], args=[program])


@dsl.container_component
def replaced(program: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="gcr.io/x/replaced", command=["python3", "-c"], args=[program])


def pool(*words: str) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "gcr.io/x/trainer", "command": [*words]},
    }


@dsl.pipeline(name="every-kind")
def every_kind(program: str, data: str) -> None:
    imported = dsl.importer(artifact_uri=data, artifact_class=Dataset, reimport=True)
    look(program=program, data=imported.output).set_display_name("forked")
    look(program=program).set_env_variable("ITS_OWN", "process").set_display_name("its own process")
    command(program=program)
    replaced(program=program)
    CustomTrainingJobOp(display_name="job", worker_pool_specs=[pool("python", "-c", LOOK)])
    CustomTrainingJobOp(display_name="module", worker_pool_specs=[pool("python", "-m", "json.tool", "--help")])


@dsl.component(base_image="python:3.11", packages_to_install=["tinypkg==1.2.4"], install_kfp_package=False)
def with_packages(program: str) -> str:
    exec(program)
    return program


@dsl.pipeline(name="installing")
def installing(program: str) -> None:
    with_packages(program=program)


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """The file to which each module of the start folder adds its name when it is imported."""
    return tmp_path / "seen"


@pytest.fixture
def start(tmp_path: Path, seen: Path) -> Path:
    """A folder with modules that nothing should import."""
    folder = tmp_path / "start"
    for name in MODULES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"open({str(seen)!r}, 'a').write(__name__ + chr(10))\n")
    return folder


def run(file: Path, start: Path, *options: str, **variables: str) -> str:
    """Run a file in the folder as a user does, and return the output of a run that succeeded."""
    words = [sys.executable, "-m", "localvertex", "run", str(file), *options]
    if Choice().how.problem:
        words.append("--allow-host-commands")
    done = subprocess.run(
        words, cwd=start, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_no_kind_of_step_imports_from_the_start_folder(
    compiled: Compile, tmp_path: Path, start: Path, seen: Path
) -> None:
    data = tmp_path / "rows.txt"
    data.write_text("1")
    given = ["--parameter", f"program={LOOK}", "--parameter", f"data={data}", "--image", "gcr.io/x/replaced=env"]
    run(compiled(every_kind), start, *given)
    assert not seen.exists(), seen.read_text()


@pytest.mark.slow
def test_no_step_with_packages_imports_from_the_start_folder(
    compiled: Compile, tmp_path: Path, start: Path, seen: Path
) -> None:
    """The version that it pins does not exist, so that pip is asked for another one before the run."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "1.2.3")
    run(compiled(installing), start, "--parameter", f"program={LOOK}", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert not seen.exists(), seen.read_text()


def test_a_folder_that_the_user_names_in_pythonpath_is_searched(compiled: Compile, tmp_path: Path, seen: Path) -> None:
    @dsl.component(**STEP)
    def use() -> None:
        import mymodel  # noqa: F401

    @dsl.pipeline(name="own-module")
    def own_module() -> None:
        use()
        CustomTrainingJobOp(display_name="job", worker_pool_specs=[pool("python", "-m", "mymodel")])

    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "mymodel.py").write_text(f"open({str(seen)!r}, 'a').write(__name__ + chr(10))\n")
    run(compiled(own_module), folder, PYTHONPATH=str(folder))
    assert sorted(seen.read_text().split()) == ["__main__", "mymodel"]
