"""A path of this machine that only the file names is reported before a container command misses it."""

from pathlib import Path

import pytest
from kfp import dsl

from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import STEP, Execute

pytestmark = pytest.mark.usefixtures("sandbox")


@dsl.container_component
def show(data: dsl.Input[dsl.Dataset]) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="alpine", command=["cat", data.path])


@dsl.container_component
def show_text(path: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["sh", "-c", 'cat "$0" || true', path])


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset], path: str) -> str:
    with open(data.path) as first, open(path) as second:
        return first.read() + second.read()


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data.txt").write_text("text")
    return str(tmp_path / "data.txt")


def test_an_importer_for_a_container_command_is_a_warning(execute: Execute, data: str) -> None:
    @dsl.pipeline
    def inner(data: dsl.Input[dsl.Dataset]) -> None:
        show(data=data)

    @dsl.pipeline(name="imports")
    def imports() -> None:
        show(data=dsl.importer(artifact_uri=data, artifact_class=dsl.Dataset).output)

    @dsl.pipeline(name="nested")
    def nested() -> None:
        inner(data=dsl.importer(artifact_uri=data, artifact_class=dsl.Dataset).output)

    for pipeline in (imports, nested):
        (text,) = [each for each in execute(pipeline)["warnings"] if "sandbox of container commands" in each]
        assert text.startswith(f"root.dag.tasks.importer: {data} is on this machine, ")
    record = execute(imports, containers=ContainerOptions(allow_host_commands=True))
    assert record["state"] == "SUCCEEDED", record["error"]


def test_the_path_of_a_parameter_is_shown(execute: Execute, data: str) -> None:
    @dsl.pipeline(name="given")
    def given(path: str) -> None:
        show(data=dsl.importer(artifact_uri=path, artifact_class=dsl.Dataset).output)
        show_text(path=path)

    record = execute(given, {"path": data})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert not [text for text in record["warnings"] if "sandbox of container commands" in text]


def test_a_constant_of_a_container_command_is_a_warning(execute: Execute, data: str) -> None:
    @dsl.pipeline(name="constants")
    def constants() -> None:
        show_text(path=data)

    record = execute(constants)
    (text,) = [each for each in record["warnings"] if "sandbox of container commands" in each]
    assert text.startswith(f"root.dag.tasks.show-text.inputs.parameters.path: {data} is on this machine, ")


def test_other_steps_and_paths_of_the_system_are_not_reported(execute: Execute, data: str) -> None:
    @dsl.pipeline(name="others")
    def others() -> None:
        read(data=dsl.importer(artifact_uri=data, artifact_class=dsl.Dataset).output, path=data)
        show_text(path="/etc/passwd")
        show_text(path="/tmp")

    record = execute(others)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert not [text for text in record["warnings"] if "sandbox of container commands" in text]
