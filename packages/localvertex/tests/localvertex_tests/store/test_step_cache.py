"""The step cache: a hit when the key is the same, a miss when any part of it differs."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import Dataset, Input, Output

from localvertex._base.compiled.parameters import ParameterSpec, ParameterType
from localvertex._base.compiled.spec import ArtifactSpec, Component, Container
from localvertex.store.steps import cache as step_cache
from localvertex.store.task import Values
from vertex_testing.runs import STEP, Execute, FindTask, Record


@dsl.component(**STEP)
def write(text: str, out: Output[Dataset]) -> str:
    import uuid

    with open(out.path, "w") as file:
        file.write(text)
    return uuid.uuid4().hex


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    import uuid

    return uuid.uuid4().hex


@dsl.pipeline(name="cached")
def cached(text: str = "a") -> None:
    read(data=write(text=text).outputs["out"])


@dsl.pipeline(name="uncached")
def uncached(text: str = "a") -> None:
    read(data=write(text=text).set_caching_options(False).outputs["out"]).set_caching_options(False)


def states(record: Record) -> list[str]:
    return [task["state"] for task in record["tasks"]]


def test_the_second_run_takes_everything_from_the_cache(execute: Execute, task: FindTask) -> None:
    first, second = execute(cached), execute(cached)
    assert states(first) == ["SUCCEEDED", "SUCCEEDED"]
    assert states(second) == ["SKIPPED", "SKIPPED"]
    assert [task(second, name)["cache_hit"] for name in ("write", "read")] == [True, True]
    assert second["state"] == "SUCCEEDED"
    for name in ("write", "read"):
        assert task(first, name)["outputs"] == task(second, name)["outputs"]


def test_another_parameter_value_is_a_miss_and_its_new_artifact_one_downstream(execute: Execute) -> None:
    execute(cached)
    assert states(execute(cached, {"text": "b"})) == ["SUCCEEDED", "SUCCEEDED"]


def test_caching_can_be_turned_off_by_the_task_and_by_the_run(execute: Execute) -> None:
    execute(cached)
    assert states(execute(cached, use_cache=False)) == ["SUCCEEDED", "SUCCEEDED"]
    execute(uncached)
    assert states(execute(uncached)) == ["SUCCEEDED", "SUCCEEDED"]


def test_a_hit_whose_artifact_was_deleted_is_a_miss(execute: Execute, task: FindTask) -> None:
    first = execute(cached)
    Path(task(first, "write")["outputs"]["artifacts"]["out"][0]["uri"]).unlink()
    assert states(execute(cached)) == ["SUCCEEDED", "SUCCEEDED"]


def test_metrics_which_have_no_file_are_taken_from_the_cache(execute: Execute, task: FindTask) -> None:
    @dsl.component(**STEP)
    def measure(metrics: dsl.Output[dsl.Metrics], data: dsl.Output[Dataset]) -> None:
        metrics.log_metric("accuracy", 0.5)
        open(data.path, "w").close()

    @dsl.pipeline(name="measures")
    def measures() -> None:
        measure()

    first, second = execute(measures), execute(measures)
    artifacts = task(first, "measure")["outputs"]["artifacts"]
    assert not Path(artifacts["metrics"][0]["uri"]).exists()
    assert states(second) == ["SKIPPED"]
    assert second["metrics"] == first["metrics"]
    Path(artifacts["data"][0]["uri"]).unlink()
    assert states(execute(measures)) == ["SUCCEEDED"]


def test_failed_steps_are_not_cached(execute: Execute, work_dir: Path) -> None:
    @dsl.component(**STEP)
    def fail(text: str) -> str:
        raise ValueError(text)

    @dsl.pipeline(name="fails")
    def fails() -> None:
        fail(text="x")

    assert states(execute(fails)) == ["FAILED"]
    assert states(execute(fails)) == ["FAILED"]
    assert not (work_dir / ".localvertex" / "cache").exists()


INTEGER = ParameterSpec(type=ParameterType.NUMBER_INTEGER)
COMPONENT = Component(
    name="comp",
    executor="exec",
    output_parameters={"n": INTEGER},
    output_artifacts={"a": ArtifactSpec(schema_title="t")},
)
CONTAINER = Container(image="i:1", command=("sh",), args=("x",), env={"A": "b"})
ARTIFACT = {"name": "artifacts/1", "uri": "/data", "type": {}, "metadata": {}}
INPUTS = Values(parameters={"p": 1}, artifacts={"d": [ARTIFACT]})


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("pipeline name", {"pipeline_name": "other"}),
        ("parameter value", {"inputs": replace(INPUTS, parameters={"p": 2})}),
        ("parameter type", {"inputs": replace(INPUTS, parameters={"p": "1"})}),
        ("artifact identity", {"inputs": replace(INPUTS, artifacts={"d": [ARTIFACT | {"name": "artifacts/2"}]})}),
        ("output parameters", {"component": replace(COMPONENT, output_parameters={})}),
        ("output artifacts", {"component": replace(COMPONENT, output_artifacts={"a": ArtifactSpec(schema_title="u")})}),
        ("image", {"container": replace(CONTAINER, image="i:2")}),
        ("command", {"container": replace(CONTAINER, command=("bash",))}),
        ("arguments", {"container": replace(CONTAINER, args=("y",))}),
        ("environment", {"container": replace(CONTAINER, env={"A": "c"})}),
    ],
)
def test_each_part_of_the_key_counts(part: str, change: dict[str, Any]) -> None:
    parts = {"pipeline_name": "p", "component": COMPONENT, "container": CONTAINER, "inputs": INPUTS}
    assert step_cache.key_of(**parts) == step_cache.key_of(**parts)
    assert step_cache.key_of(**parts) != step_cache.key_of(**parts | change), part


def test_the_content_and_uri_of_an_artifact_are_not_in_the_key() -> None:
    moved = replace(INPUTS, artifacts={"d": [ARTIFACT | {"uri": "/elsewhere"}]})
    assert step_cache.key_of("p", COMPONENT, CONTAINER, INPUTS) == step_cache.key_of("p", COMPONENT, CONTAINER, moved)


def test_results_of_a_removed_run_are_misses(execute: Execute, work_dir: Path) -> None:
    first = execute(cached)
    shutil.rmtree(work_dir / first["run_id"])
    assert states(execute(cached)) == ["SUCCEEDED", "SUCCEEDED"]
