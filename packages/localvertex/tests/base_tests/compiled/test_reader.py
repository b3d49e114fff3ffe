"""The reader notes what is wrong with its path, and reads the rest."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.compiled.load import load
from localvertex._base.compiled.parameters import ParameterType
from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Container, Pipeline
from localvertex._base.userinput.errors import UserError

SPEC: dict[str, Any] = {
    "schemaVersion": "2.1.0",
    "pipelineInfo": {"name": "training"},
    "defaultPipelineRoot": "gs://bucket/root",
    "root": {
        "dag": {
            "tasks": {
                "train": {
                    "componentRef": {"name": "comp-train"},
                    "cachingOptions": {"enableCache": True},
                    "inputs": {
                        "parameters": {
                            "epochs": {"componentInputParameter": "epochs"},
                            "pools": {"runtimeValue": {"constant": [{"replica_count": 1.0}]}},
                        }
                    },
                }
            }
        },
        "inputDefinitions": {"parameters": {"epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 3.0}}},
    },
    "components": {"comp-train": {"executorLabel": "exec-train"}},
    "deploymentSpec": {"executors": {"exec-train": {"container": {"image": "python", "args": ["a", "b"]}}}},
}


def changed(path: str, value: Any) -> Pipeline:
    """Read the spec with one value replaced."""
    document = copy.deepcopy(SPEC)
    *parents, last = path.split()
    inner = document
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return read_pipeline(document)


def test_a_whole_file_is_read_without_problems() -> None:
    pipeline = read_pipeline(SPEC)
    assert pipeline.problems == []
    assert (pipeline.name, pipeline.default_root, pipeline.schema_version) == ("training", "gs://bucket/root", "2.1.0")
    declared = pipeline.root.input_parameters["epochs"]
    assert (declared.type, declared.default) == (ParameterType.NUMBER_INTEGER, 3)
    assert pipeline.root.dag is not None
    train = pipeline.root.dag.tasks["train"]
    assert (train.path, train.enable_cache, train.component) == ("root.dag.tasks.train", True, "comp-train")
    source = train.parameters["pools"]
    assert source.constant == [{"replica_count": 1}]
    assert source.path == "root.dag.tasks.train.inputs.parameters.pools.runtimeValue.constant"
    executor = pipeline.executors["exec-train"]
    assert isinstance(executor, Container)
    assert (executor.args, executor.path) == (("a", "b"), "deploymentSpec.executors.exec-train.container")


def test_a_pipeline_job_is_read_as_its_spec() -> None:
    assert read_pipeline({"pipelineSpec": SPEC, "runtimeConfig": {}}).name == "training"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            "root dag tasks train retryPolicy",
            {"maxRetryCount": "two"},
            "maxRetryCount: expected an integer, found 'two'",
        ),
        ("root inputDefinition", {}, "root: the field 'inputDefinition' is unknown; did you mean inputDefinitions?"),
        ("root dag tasks other", 3, "root.dag.tasks.other: expected an object, found 3"),
        ("components", [], "components: expected an object, found a list"),
        ("deploymentSpec executors exec-train container command", [1, "b"], "command[0]: expected a string, found 1"),
        ("schemaVersion", "3.0.0", "schemaVersion is '3.0.0'; expected 2.0.0 or 2.1.0"),
        ("root inputDefinitions parameters epochs parameterType", "NEW", "'NEW' is not one of NUMBER_DOUBLE"),
        ("root dag tasks train retryPolicy", {"backoffDuration": "soon"}, "'soon' is not a duration"),
        ("root dag tasks ../x", {}, "'../x' is not a usable name"),
    ],
)
def test_what_is_wrong_is_noted_with_its_path_and_the_rest_is_read(path: str, value: Any, problem: str) -> None:
    pipeline = changed(path, value)
    assert any(problem in text for text in pipeline.problems), pipeline.problems
    assert pipeline.root.dag is not None
    assert pipeline.root.dag.tasks["train"].component == "comp-train"


@pytest.mark.parametrize(
    ("value", "constant", "name"),
    [
        ({"constantValue": {"intValue": "7"}}, 7, None),
        ({"constantValue": {"stringValue": "x"}}, "x", None),
        ({"runtimeParameter": "epochs"}, None, "epochs"),
    ],
)
def test_values_of_kfp_1_8_are_read(value: dict[str, Any], constant: object, name: str | None) -> None:
    pipeline = changed("root dag tasks train inputs parameters pools", {"runtimeValue": value})
    assert pipeline.root.dag is not None
    source = pipeline.root.dag.tasks["train"].parameters["pools"]
    assert (source.constant, source.input) == (constant, name)
    assert pipeline.problems == []


@pytest.mark.parametrize("value", [{}, {"intValue": "x"}, {"intValue": "1", "stringValue": "1"}, {"boolValue": True}])
def test_a_value_of_no_known_kind_is_noted(value: dict[str, Any]) -> None:
    pipeline = changed("root dag tasks train inputs parameters pools", {"runtimeValue": {"constantValue": value}})
    assert "constantValue: expected one value under intValue, doubleValue, stringValue" in str(pipeline.problems)


@pytest.mark.parametrize("document", [{}, {"root": None}, {"pipelineSpec": 3}, {"root": {"dag": []}, 1: 2}])
def test_what_is_not_a_pipeline_has_problems_and_no_tasks(document: dict[Any, Any]) -> None:
    pipeline = read_pipeline(document)
    assert pipeline.problems
    assert not (pipeline.root.dag and pipeline.root.dag.tasks)


def test_a_file_with_a_problem_is_refused_by_load(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(SPEC))
    assert load(path).pipeline.name == "training"
    path.write_text(json.dumps(SPEC | {"extra": 1}))
    with pytest.raises(UserError, match=r"pipeline\.json: top level: the field 'extra' is unknown"):
        load(path)


def test_a_repeated_key_is_refused_in_both_formats(tmp_path: Path) -> None:
    for name, text in (("p.json", '{"root": {}, "root": {}}'), ("p.yaml", "root: {}\nroot: {}\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match="has the key 'root' twice"):
            load(tmp_path / name)


def test_a_constant_that_is_null_is_not_taken_for_a_missing_one() -> None:
    path = "root dag tasks train inputs parameters pools"
    for value, is_null, end in (({"constant": None}, True, ".runtimeValue.constant"), ({}, False, ".runtimeValue")):
        pipeline = changed(path, {"runtimeValue": value | {"other": 1}})
        assert pipeline.root.dag is not None
        source = pipeline.root.dag.tasks["train"].parameters["pools"]
        assert (source.constant, source.is_null) == (None, is_null)
        assert source.path.endswith(end)
