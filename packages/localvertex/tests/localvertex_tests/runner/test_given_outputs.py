"""Outputs that the user gives in place of a step: never reported as computed, and the user's files never change."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.bigquery import BigqueryQueryJobOp
from kfp import dsl

import localvertex
from localvertex.runner.engine import open_file
from localvertex.runner.options import Options
from localvertex.values import configuration
from localvertex_base.userinput.errors import UserError

Read = Callable[[str], configuration.Configuration]


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def train(rows: int, model: dsl.Output[dsl.Model], metrics: dsl.Output[dsl.Metrics]) -> float:
    raise RuntimeError("this step must not run")


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def spoil(model: dsl.Input[dsl.Model], accuracy: float) -> str:
    import os

    text = open(model.path + "/weights.txt").read()
    os.chmod(model.path + "/weights.txt", 0o600)
    open(model.path + "/weights.txt", "w").write("spoiled")
    return f"{text} {accuracy}"


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def notify(status: dsl.PipelineTaskFinalStatus) -> str:
    return f"{status.state} {status.error_message}"


@dsl.pipeline
def training() -> float:
    return train(rows=3).outputs["Output"]


@dsl.pipeline
def spoiling():
    trained = train(rows=3)
    spoil(model=trained.outputs["model"], accuracy=trained.outputs["Output"])


TRAIN = '[step.train]\noutputs = {Output = 0.93, model = "given", metrics = {metadata = {accuracy = 0.93}}}\n'


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a configuration beside a given model, and read it."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "weights.txt").write_text("mine")

    def write_and_read(text: str) -> configuration.Configuration:
        file = tmp_path / "localvertex.toml"
        file.write_text(text)
        return configuration.read(file)

    return write_and_read


def test_a_given_step_is_shown_as_given_and_its_results_are_not_those_of_the_run(
    execute: Any, task: Any, read: Read, work_dir: Path
) -> None:
    record = execute(training, run_id="r", configuration=read(TRAIN))
    assert record["state"] == "SUCCEEDED", record["error"]
    step = task(record, "train")
    assert (step["state"], step["cache_hit"], step["log"]) == ("GIVEN", False, None)
    assert step["outputs"]["parameters"] == {"Output": 0.93}
    assert step["outputs"]["artifacts"]["metrics"][0]["metadata"] == {"accuracy": 0.93}
    assert Path(step["outputs"]["artifacts"]["model"][0]["uri"], "weights.txt").read_text() == "mine"
    assert record["metrics"] == record["models"] == []
    assert any(text.startswith("given, not run: train") for text in record["warnings"])
    again = execute(training, run_id="again", configuration=read(TRAIN.replace("0.93", "0.5")))
    assert task(again, "train")["state"] == "GIVEN"
    assert task(again, "train")["outputs"]["parameters"] == {"Output": 0.5}
    assert not (work_dir / ".localvertex" / "cache").exists()


@pytest.mark.slow
def test_no_step_changes_a_given_file(execute: Any, task: Any, read: Read, tmp_path: Path) -> None:
    record = execute(spoiling, configuration=read(TRAIN))
    assert task(record, "spoil")["outputs"]["parameters"]["Output"] == "mine 0.93"
    assert (tmp_path / "given" / "weights.txt").read_text() == "mine"
