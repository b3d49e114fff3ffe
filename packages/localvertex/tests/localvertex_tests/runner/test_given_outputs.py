"""Outputs that the user gives in place of a step: never reported as computed, and the user's files never change."""

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.bigquery import BigqueryQueryJobOp
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.runner.engine import open_file
from localvertex.runner.options import Options
from localvertex.values import configuration
from vertex_testing.server import wait_until

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
def spoiling() -> None:
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
    assert any(text.endswith("localvertex.toml, not run: train") for text in record["warnings"])
    again = execute(training, run_id="again", configuration=read(TRAIN.replace("0.93", "0.5")))
    assert task(again, "train")["state"] == "GIVEN"
    assert task(again, "train")["outputs"]["parameters"] == {"Output": 0.5}
    assert not (work_dir / ".localvertex" / "cache").exists()


@pytest.mark.slow
def test_no_step_changes_a_given_file(execute: Any, task: Any, read: Read, tmp_path: Path) -> None:
    record = execute(spoiling, configuration=read(TRAIN))
    assert task(record, "spoil")["outputs"]["parameters"]["Output"] == "mine 0.93"
    assert (tmp_path / "given" / "weights.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[step.trian]\noutputs = {}",
            r"^\[step\.trian\]: the pipeline has no such task; did you mean train\?; it has",
        ),
        ('[step."for loop"]\noutputs = {}', r'^\[step\."for loop"\]: the pipeline has no such task'),
        ("[step.train]\noutputs = {acuracy = 1, Output = 1}", "it has no output 'acuracy'"),
        (
            "[step.train]\noutputs = {Output = 0.5}",
            r'outputs lack metrics, model; add metrics = "path/to/file", model = "path/to/file"$',
        ),
        (TRAIN.replace("0.93,", '"high",'), "output Output: expected NUMBER_DOUBLE, found 'high'; for example Output"),
        (TRAIN.replace("0.93,", "nan,"), r"localvertex.toml contains the number nan; expected a finite number"),
        (TRAIN.replace("0.93,", "2026-01-01,"), "output Output: expected NUMBER_DOUBLE, .* not JSON serializable"),
        (
            TRAIN.replace('"given"', '"gone"'),
            "output model: expected system.Model, there is no file or folder '.*gone'",
        ),
        (TRAIN.replace('"given"', "7"), "output model: expected system.Model, found 7, which is neither a path nor"),
        (TRAIN.replace('"given"', '{uri = "/given"}'), "output model: .* neither a path nor .*uri = gs://"),
        (TRAIN.replace('"given"', '""'), "output model: expected system.Model, found an empty text; for"),
        (TRAIN.replace('"given"', '"~nobody_/x"'), "output model: expected system.Model, no home directory for '~nob"),
        (TRAIN.replace("metadata", "meta"), "output metrics: .* which is neither a path nor"),
        (TRAIN.replace("{accuracy = 0.93}", "3"), "output metrics: .* which is neither a path nor"),
    ],
)
def test_wrong_outputs_are_refused_in_one_line_before_anything_is_written(
    text: str, reason: str, execute: Any, read: Read, work_dir: Path
) -> None:
    with pytest.raises(UserError, match=reason) as raised:
        execute(training, configuration=read(text))
    assert "\n" not in str(raised.value)
    assert not work_dir.exists()


@dsl.pipeline
def inner(query: str) -> float:
    BigqueryQueryJobOp(project="p", query=query)
    return train(rows=3).outputs["Output"]


@dsl.pipeline
def of_the_cloud(again: bool = True):  # noqa: ANN201
    with dsl.ExitHandler(notify()), dsl.ParallelFor([1, 2]) as _:
        looped = train(rows=3)
        looped.set_retry(2)
        with dsl.If(looped.outputs["Output"] > 0.9):
            inner(query="select 1")
    inner(query="select 2")


def test_what_is_proposed_lets_the_pipeline_run(compiled: Any, execute: Any, read: Read, tmp_path: Path) -> None:
    file = compiled(of_the_cloud)
    with pytest.raises(localvertex.Refused) as raised:
        open_file(file)
    paths = ["exit-handler-1/for-loop-3/condition-4/inner/bigquery-query-job", "inner-2/bigquery-query-job"]
    tables = tomllib.loads(raised.value.proposal)
    assert [*tables["step"]] == paths
    given = raised.value.proposal.replace("path/to/file", "given")
    parts = ("exit-handler-1/for-loop-3/train", "exit-handler-1/for-loop-3/condition-4/inner/train", "inner-2/train")
    given += "".join("\n" + TRAIN.replace("[step.train]", f'[step."{each}"]') for each in parts)
    given += '[step.notify]\noutputs = {Output = "told"}\n'
    record = execute(file, configuration=read(given))
    assert record["state"] == "SUCCEEDED", record["error"]
    states = {each["path"]: each["state"] for each in record["tasks"] if each["kind"] == "step"}
    assert set(states.values()) == {"GIVEN"}
    # Nor is a dag whose steps are all given shown as succeeded by itself.
    assert {each["state"] for each in record["tasks"]} == {"GIVEN"}
    assert states["exit-handler-1/for-loop-3/1/condition-4/inner/bigquery-query-job"] == "GIVEN"
    assert len(states) == 9


def test_a_dag_can_be_given_as_a_whole_but_no_loop(compiled: Any, execute: Any, read: Read) -> None:
    record = execute(nesting, configuration=read("[step.inner]\noutputs = {Output = 0.5}"))
    assert record["outputs"]["parameters"] == {"Output": 0.5}
    assert [(each["path"], each["kind"], each["state"]) for each in record["tasks"]] == [("inner", "step", "GIVEN")]
    with pytest.raises(UserError, match="a loop cannot be given"):
        execute(of_the_cloud, configuration=read('[step."exit-handler-1/for-loop-3"]\noutputs = {}'))
    with pytest.raises(UserError, match="several tasks have this name; expected one of exit-handler-1/"):
        execute(of_the_cloud, configuration=read("[step.train]\noutputs = {}"))


@dsl.pipeline
def nesting() -> float:
    return inner(query="select 1").output


@dsl.pipeline
def with_exit():  # noqa: ANN201
    with dsl.ExitHandler(notify()):
        train(rows=3)


@pytest.mark.slow
def test_an_exit_handler_and_a_resumed_run_see_what_was_given(
    execute: Any, task: Any, read: Read, work_dir: Path, tmp_path: Path
) -> None:
    record = execute(with_exit, run_id="r", configuration=read(TRAIN.replace("train", '"exit-handler-1/train"')))
    assert task(record, "notify")["outputs"]["parameters"]["Output"].startswith("SUCCEEDED")
    record |= {"state": "FAILED", "tasks": []}
    (work_dir / "r" / "run.json").write_text(json.dumps(record))
    read_again = (tmp_path / "localvertex.toml").read_text().replace("0.93", "0.5")
    (tmp_path / "localvertex.toml").write_text(read_again)
    other = configuration.read(tmp_path / "localvertex.toml")
    resumed = localvertex.resume("r", options=Options(work_dir=work_dir, configuration=other))
    assert task(resumed, "train")["outputs"]["parameters"] == {"Output": 0.93}
    assert task(resumed, "train")["state"] == "GIVEN"
    (work_dir / "r" / "run.json").write_text(json.dumps(resumed | {"state": "FAILED"}))
    # The run has a copy of it.
    shutil.rmtree(tmp_path / "given")
    again = localvertex.resume("r", options=Options(work_dir=work_dir))
    assert (again["state"], task(again, "train")["state"]) == ("SUCCEEDED", "GIVEN")


@pytest.mark.slow
def test_the_command_and_the_api_show_what_is_given_and_propose_it(
    compiled: Any, command: Any, read: Read, start_server: Any, tmp_path: Path
) -> None:
    refused, accepted = compiled(nesting, "refused.json"), compiled(training, "accepted.json")
    read("# nothing yet\n")
    done = command("run", refused)
    block = done.stderr.partition("add to localvertex.toml:\n\n")[2]
    assert (done.returncode, [*tomllib.loads(block)["step"]]) == (2, ["inner/bigquery-query-job"])
    assert "using" in done.stdout
    assert command("run", refused, "--config", "gone.toml").returncode == 2
    read(TRAIN + "[step.of-another-pipeline]\noutputs = {}\n")
    done = command("run", accepted)
    assert (done.returncode, "the pipeline has no such task" in done.stderr) == (2, True)
    with start_server("--config", str(tmp_path / "localvertex.toml")) as server:
        answer = server.call("POST", "pipelineJobs", {"pipelineSpec": json.loads(refused.read_text())})
        assert '[step."inner/bigquery-query-job"]' in answer.json()["error"]["message"]
        answer = server.call("POST", "pipelineJobs", {"pipelineSpec": json.loads(accepted.read_text())})
        name = answer.json()["name"].rpartition("/")[2]
        job = wait_until(lambda: (job := server.call("GET", f"pipelineJobs/{name}").json()).get("endTime") and job)
        assert job["state"] == "PIPELINE_STATE_SUCCEEDED"
        (detail,) = (each for each in job["jobDetail"]["taskDetails"] if each["taskName"] == "train")
        assert (detail["state"], detail["execution"]["displayName"]) == ("SKIPPED", "train (given)")
        assert detail["execution"]["metadata"]["given"] is True
    shown = command("show", "latest").stdout
    assert "GIVEN" in shown
    assert "with given outputs in place of 1 step" in shown
