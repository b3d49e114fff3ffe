"""What the file alone shows to be impossible is refused before the first step, one line each; nothing is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from vertex_testing.runs import STEP, Command, Compile, Execute


@dsl.component(**STEP)
def make(folder: str, out: dsl.Output[dsl.Dataset]) -> int:
    from pathlib import Path

    Path(folder, "ran").touch()
    Path(out.path).touch()
    return 1


@dsl.component(**STEP)
def use(data: dsl.Input[dsl.Dataset], number: int, text: str = "x") -> None:
    pass


@dsl.container_component
def shell(text: str, result: dsl.OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="any", command=["sh", "-c", 'echo "$0" > "$1"'], args=[text, result])


@dsl.pipeline(name="checked")
def checked(folder: str, word: str = "hello") -> None:
    first = make(folder=folder)
    use(data=first.outputs["out"], number=3).set_retry(2)
    shell(text=word).after(first).set_env_variable("A", "b")


@pytest.fixture
def document(compiled: Compile) -> dict[str, Any]:
    """Return a valid pipeline, decoded."""
    return json.loads(compiled(checked).read_text())


def task_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    return document["root"]["dag"]["tasks"][name]


def container_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    return document["deploymentSpec"]["executors"][f"exec-{name}"]["container"]


def constant(document: dict[str, Any], value: Any) -> None:
    task_of(document, "use")["inputs"]["parameters"]["number"] = {"runtimeValue": {"constant": value}}


def default(document: dict[str, Any], **changes: Any) -> None:
    document["components"]["comp-use"]["inputDefinitions"]["parameters"]["text"] |= changes


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing parameter": (
        lambda d: task_of(d, "use")["inputs"].pop("parameters"),
        "the step needs 'number' (NUMBER_INTEGER), which has no value",
    ),
    "null for a required parameter": (lambda d: constant(d, None), "the step needs 'number' (NUMBER_INTEGER)"),
    "missing artifact": (
        lambda d: task_of(d, "use")["inputs"].pop("artifacts"),
        "the step needs 'data' (system.Dataset), which has no value",
    ),
    "constant of another type": (
        lambda d: constant(d, "three"),
        "inputs.parameters.number.runtimeValue.constant: expected NUMBER_INTEGER, found 'three'",
    ),
    "constant that is not an integer": (lambda d: constant(d, 1.5), "expected NUMBER_INTEGER, found 1.5"),
    "default of another type": (
        lambda d: default(d, defaultValue=[1]),
        "inputDefinitions.parameters.text.defaultValue: expected STRING, found [1]",
    ),
    "default that is not allowed": (lambda d: default(d, literals=["a", "b"]), "expected one of a, b, found 'x'"),
    "too many retries": (
        lambda d: task_of(d, "use")["retryPolicy"].update(maxRetryCount=10**9),
        "retryPolicy.maxRetryCount: 1000000000 retries; at most 1000 can run locally",
    ),
    "name of a variable with =": (
        lambda d: container_of(d, "shell")["env"][0].update(name="A=B"),
        "'A=B' is not a valid variable name",
    ),
    "placeholder of no output": (
        lambda d: container_of(d, "shell").update(args=["{{$.outputs.parameters['other'].output_file}}"]),
        "exec-shell.container.args: there is a placeholder for 'other', which is not among the step's outputs",
    ),
    "placeholder of no artifact": (
        lambda d: container_of(d, "shell").update(args=["{{$.inputs.artifacts['other'].path}}"]),
        "a placeholder for 'other', which is not among the step's inputs (artifacts)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_before_the_first_step(
    document: dict[str, Any], command: Command, tmp_path: Path, case: str
) -> None:
    change, message = WRONG[case]
    change(document)
    (tmp_path / "pipeline.json").write_text(json.dumps(document))
    done = command("run", "pipeline.json", "--parameter", f"folder={tmp_path}")
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if message in line]
    assert line.isprintable()
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "ran").exists()


def test_the_unchanged_file_runs(document: dict[str, Any], command: Command, tmp_path: Path) -> None:
    (tmp_path / "pipeline.json").write_text(json.dumps(document))
    done = command("run", "pipeline.json", "--parameter", f"folder={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "ran").exists()


def test_all_reasons_are_given_at_once(document: dict[str, Any], command: Command, tmp_path: Path) -> None:
    for case in ("missing artifact", "constant of another type", "name of a variable with =", "too many retries"):
        WRONG[case][0](document)
    (tmp_path / "pipeline.json").write_text(json.dumps(document))
    done = command("run", "pipeline.json", "--parameter", f"folder={tmp_path}")
    assert len([line for line in done.stderr.splitlines() if line.startswith("  ")]) == 4


def test_retries_of_a_nested_pipeline_are_a_warning(execute: Execute) -> None:
    @dsl.component(**STEP)
    def succeed() -> None:
        pass

    @dsl.pipeline
    def inner() -> None:
        succeed()

    @dsl.pipeline(name="outer")
    def outer() -> None:
        inner().set_retry(3)

    record = execute(outer)
    assert record["state"] == "SUCCEEDED"
    (warning,) = [text for text in record["warnings"] if "retries" in text]
    assert warning == (
        "root.dag.tasks.inner: the retries of a nested pipeline have no effect here; call set_retry on its steps"
    )
