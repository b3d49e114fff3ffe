"""What must never happen: a run with a failed task that ends as a success, or an exit task told that all went well."""

import json
from pathlib import Path

import pytest
from kfp import dsl, local
from kfp.dsl import PipelineTaskFinalStatus

from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask


@dsl.component(**STEP)
def train(folder: str) -> str:
    raise RuntimeError("out of memory")


@dsl.component(**STEP)
def deploy(model: str) -> str:
    return model


@dsl.component(**STEP)
def clean_up(text: str = "default") -> str:
    return text


@dsl.component(**STEP)
def report(status: PipelineTaskFinalStatus) -> str:
    import json

    return json.dumps([status.state, status.pipeline_task_name, status.error_code, status.error_message])


@dsl.pipeline(name="cleans-up")
def cleans_up(folder: str = "") -> None:
    trained = train(folder=folder)
    deploy(model=trained.output)
    clean_up(text=trained.output).ignore_upstream_failure()


@dsl.pipeline(name="cleans-up-after")
def cleans_up_after(folder: str = "") -> None:
    trained = train(folder=folder)
    deploy(model="model").after(trained)
    clean_up(text="done").after(trained).ignore_upstream_failure()


@dsl.pipeline(name="inner")
def inner(folder: str) -> None:
    clean_up(text="done").after(train(folder=folder)).ignore_upstream_failure()


@dsl.pipeline(name="nested")
def nested(folder: str = "") -> None:
    done = inner(folder=folder)
    deploy(model="after").after(done)


@dsl.pipeline(name="in-a-loop")
def in_a_loop(folder: str = "") -> None:
    with dsl.ParallelFor(["a", "b"]):
        clean_up(text=train(folder=folder).output).ignore_upstream_failure()


@dsl.pipeline(name="in-a-branch")
def in_a_branch(folder: str = "") -> None:
    with dsl.If(folder == ""):
        clean_up(text=train(folder=folder).output).ignore_upstream_failure()


@dsl.pipeline(name="last-task-informed")
def last_task_informed(folder: str = "") -> None:
    report().after(train(folder=folder)).ignore_upstream_failure()


@dsl.pipeline(name="exits")
def exits(folder: str = "") -> None:
    with dsl.ExitHandler(report()):
        clean_up(text="done").after(train(folder=folder)).ignore_upstream_failure()


PIPELINES = [cleans_up, cleans_up_after, nested, in_a_loop, in_a_branch, last_task_informed, exits]


@pytest.mark.parametrize("fail_fast", [False, True])
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda each: str(each.name))
def test_a_run_with_a_failed_task_has_failed(execute: Execute, pipeline: object, fail_fast: bool) -> None:
    record = execute(pipeline, fail_fast=fail_fast, use_cache=False)
    assert "FAILED" in {each["state"] for each in record["tasks"] if each["kind"] == "step"}
    assert record["state"] == "FAILED"
    assert "out of memory" in record["error"]
    # A dag with a failed task has failed too.
    failed = {each["path"] for each in record["tasks"] if each["state"] == "FAILED"}
    assert all(path.rpartition("/")[0] in {*failed, ""} for path in failed)
    # The tasks that ignore the failure have run all the same.
    assert {each["state"] for each in record["tasks"] if each["name"] in ("clean-up", "report")} == {"SUCCEEDED"}


def test_the_exit_task_is_told_of_a_failure_that_was_cleaned_up(execute: Execute, task: FindTask) -> None:
    told = json.loads(task(execute(exits), "report")["outputs"]["parameters"]["Output"])
    assert told == ["FAILED", "exit-handler-1", 9, "train: exit code 1: RuntimeError: out of memory"]


def test_the_command_line_ends_with_1_and_the_reason(compiled: Compile, command: Command) -> None:
    done = command("run", compiled(cleans_up))
    assert done.returncode == 1
    assert "out of memory" in done.stdout
    assert "FAILED" in command("list").stdout


@pytest.mark.parametrize("pipeline", [cleans_up_after, nested, exits], ids=lambda each: str(each.name))
def test_kfp_local_calls_these_runs_failed_too(
    pipeline: dsl.base_component.BaseComponent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp"), raise_on_error=True)
    with pytest.raises(Exception, match=r"finished with status .*FAILURE"):
        pipeline(folder="")


@dsl.component(**STEP)
def measure(where: str, metrics: dsl.Output[dsl.Metrics]) -> float:
    if where == "metric":
        metrics.log_metric("accuracy", float("nan"))
    return float("-inf" if where == "parameter" else "1")


@dsl.pipeline(name="measures")
def measures(where: str) -> None:
    measure(where=where)


@pytest.mark.parametrize(
    ("where", "place"),
    [("metric", "output 'metrics': 'accuracy' is nan; "), ("parameter", "output 'Output' is -inf; ")],
)
def test_a_number_that_json_has_not_is_refused_by_its_name(execute: Execute, where: str, place: str) -> None:
    record = execute(measures, {"where": where})
    (task,) = record["tasks"]
    assert (record["state"], task["state"]) == ("FAILED", "FAILED")
    assert task["error"].startswith(place)
