"""Machines that a file decides only in part: loops, parameters and outputs are checked as far as they are known."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from machines_tests.conftest import TODAY, Program

from localvertex.machines import check_pipeline
from localvertex.machines.job.finding import Finding

ITEM = "{{$.inputs.parameters['pipelinechannel--item']}}"
GPU, COUNT = "{{$.inputs.parameters['gpu']}}", "{{$.inputs.parameters['count']}}"


def step(accelerator: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline with one step, its accelerator and its parameters gpu and count."""
    source = {name: {"componentInputParameter": name} for name in ("gpu", "count")}
    inputs = {"gpu": {"parameterType": "STRING"}, "count": {"parameterType": "NUMBER_INTEGER"}}
    container = {"image": "python:3.11", "command": ["train"], "resources": {"accelerator": accelerator}}
    return {
        "pipelineInfo": {"name": "p"},
        "defaultPipelineRoot": "gs://b/root",
        "root": {
            "inputDefinitions": {"parameters": copy.deepcopy(inputs)},
            "dag": {"tasks": {"train": {"componentRef": {"name": "comp"}, "inputs": {"parameters": source}}}},
        },
        "components": {"comp": {"executorLabel": "exec", "inputDefinitions": {"parameters": inputs}}},
        "deploymentSpec": {"executors": {"exec": {"container": container}}},
    }


def found(spec: dict[str, Any]) -> list[Finding]:
    return check_pipeline(spec, today=TODAY)


@pytest.mark.parametrize(
    ("gpu", "count", "rules"),
    [
        ("NVIDIA_TESLA_T4", 3, ["accelerator-count"]),
        ("NVIDIA_TESLA_T4", 4.0, []),
        ("NVIDIA_TESLA_T5", 1, ["accelerator-type"]),
        (None, 1, ["not-checked"]),
        ("NVIDIA_TESLA_T4", None, ["not-checked"]),
    ],
)
def test_the_accelerator_of_a_step_is_checked_with_its_default(gpu: object, count: object, rules: list[str]) -> None:
    spec = step({"resourceType": GPU, "resourceCount": COUNT})
    for name, default in (("gpu", gpu), ("count", count)):
        if default is not None:
            spec["root"]["inputDefinitions"]["parameters"][name]["defaultValue"] = default
    assert [finding.rule for finding in found(spec)] == rules


def loop(items: dict[str, Any], default: Any = None) -> dict[str, Any]:
    """Return a pipeline with one step inside of a loop, whose number of T4 is the item."""
    spec = step({"resourceType": "NVIDIA_TESLA_T4", "resourceCount": ITEM})
    inner, task = spec["components"], spec["root"]["dag"]["tasks"].pop("train")
    inner["comp"]["inputDefinitions"]["parameters"] = {"pipelinechannel--item": {"parameterType": "NUMBER_INTEGER"}}
    task["inputs"] = {"parameters": {"pipelinechannel--item": {"componentInputParameter": "item"}}}
    inner["body"] = {
        "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}},
        "dag": {"tasks": {"train": task}},
    }
    spec["root"]["inputDefinitions"]["parameters"] = {"list": {"parameterType": "LIST", "defaultValue": default}}
    spec["root"]["dag"]["tasks"]["loop"] = {
        "componentRef": {"name": "body"},
        "inputs": {"parameters": {"list": {"componentInputParameter": "list"}}},
        "parameterIterator": {"itemInput": "item", "items": items},
    }
    return spec


def test_every_item_of_a_loop_is_checked() -> None:
    findings = found(loop({"raw": "[1, 3, 3, 4, 5]"}))
    assert [finding.message.partition(" on ")[0] for finding in findings] == [
        "3 x NVIDIA_TESLA_T4",
        "5 x NVIDIA_TESLA_T4",
    ]
    (finding,) = found(loop({"inputParameter": "list"}, [1, 3]))
    assert finding.rule == "accelerator-count"
    (finding,) = found(loop({"inputParameter": "list"}))
    assert (finding.rule, finding.severity) == ("not-checked", "warning")


def test_a_loop_with_very_many_items_is_checked_in_part_and_says_so() -> None:
    raw = json.dumps([*range(1, 150)])
    rules = {finding.rule for finding in found(loop({"raw": raw}))}
    assert rules == {"accelerator-count", "not-checked"}


def test_a_field_of_an_item_is_checked() -> None:
    spec = loop({"raw": '[{"n": 1}, {"n": 3}]'})
    source = spec["components"]["body"]["dag"]["tasks"]["train"]["inputs"]["parameters"]["pipelinechannel--item"]
    source["parameterExpressionSelector"] = 'parseJson(string_value)["n"]'
    (finding,) = found(spec)
    assert finding.message.startswith("3 x NVIDIA_TESLA_T4")


def test_the_last_line_counts_what_was_not_checked(machines: Program, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(step({"resourceType": GPU, "resourceCount": COUNT})))
    done = machines("check", file)
    assert done.stdout.splitlines()[-1].endswith("compiled pipeline, 0 errors, 1 warning (1 not checked)")
    assert done.returncode == 0
