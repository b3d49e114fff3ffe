"""Conditions, nested pipelines, loops, failures, retries, exit handlers."""

from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import Artifact, Dataset, Input, Output, PipelineTaskFinalStatus

import localvertex
from vertex_testing.runs import STEP, Compile, Execute, FindTask, ReadLog


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def number(n: int) -> int:
    return n


@dsl.component(**STEP)
def fail(text: str) -> str:
    raise ValueError(text)


@dsl.component(**STEP)
def write(text: str, out: Output[Dataset]) -> None:
    with open(out.path, "w") as file:
        file.write(text)


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.pipeline(name="branches")
def branches(n: int = 3, text: str = "it's") -> str:
    with dsl.If(n > 5, name="large"):
        large, large_data = echo(text="large"), write(text="large data")
    with dsl.Elif(text == 'say "hi"', name="quoted"):
        quoted, quoted_data = echo(text="quoted"), write(text="quoted data")
    with dsl.Else(name="other"):
        other, other_data = echo(text="other"), write(text="other data")
    chosen = dsl.OneOf(large.output, quoted.output, other.output)
    data = dsl.OneOf(large_data.outputs["out"], quoted_data.outputs["out"], other_data.outputs["out"])
    read(data=data)
    return echo(text=chosen).output


@pytest.mark.parametrize(
    ("parameters", "taken"),
    [({}, "other"), ({"n": 6}, "large"), ({"n": 5, "text": 'say "hi"'}, "quoted"), ({"text": "say 'hi'"}, "other")],
)
def test_exactly_one_branch_is_taken_and_oneof_returns_its_outputs(
    execute: Execute, task: FindTask, parameters: dict[str, Any], taken: str
) -> None:
    record = execute(branches, parameters)
    assert record["outputs"]["parameters"]["Output"] == taken
    assert task(record, "read")["outputs"]["parameters"]["Output"] == f"{taken} data"
    states = [each["state"] for each in record["tasks"] if each["display_name"] in ("large", "quoted", "other")]
    assert sorted(states) == ["NOT_TRIGGERED", "NOT_TRIGGERED", "SUCCEEDED"]
    assert {each["note"] for each in record["tasks"] if each["state"] == "NOT_TRIGGERED"} == {"its condition is false"}


@dsl.pipeline(name="bad-condition")
def bad_condition(text: str = "x") -> None:
    with dsl.If(text == "it's"):
        echo(text="never")


def test_a_condition_that_is_not_cel_is_refused_by_name_before_anything_runs(compiled: Compile, work_dir: Path) -> None:
    # kfp 2.17 writes the quote into the expression unescaped.
    with pytest.raises(localvertex.Refused, match=r"tasks\.condition-1\.triggerPolicy\.condition: .*is not valid CEL"):
        localvertex.run(compiled(bad_condition), options=localvertex.Options(work_dir=work_dir))
    assert not work_dir.exists()


@dsl.pipeline
def inner(n: int, text: str = "default") -> str:
    doubled = number(n=n)
    return echo(text=f"{text}: {doubled.output}").output


@dsl.pipeline(name="nested")
def nested(n: int = 4) -> str:
    one = inner(n=n)
    with dsl.If(n == 99):
        echo(text="no")
    return inner(n=n, text=one.output).output


def test_nested_pipelines_pass_values_in_and_out_and_may_use_defaults(execute: Execute, task: FindTask) -> None:
    record = execute(nested)
    assert record["outputs"]["parameters"]["Output"] == "default: 4: 4"
    assert task(record, "inner-2/echo")["inputs"]["parameters"]["text"] == "default: 4: 4"


@dsl.component(**STEP)
def report(status: PipelineTaskFinalStatus) -> str:
    import json

    return json.dumps([status.state, status.pipeline_task_name, status.error_code, status.error_message])


@dsl.pipeline(name="exits")
def exits(text: str = "3 of 5 shards found") -> None:
    with dsl.ExitHandler(report()):
        echo(text="independent")
        failed = fail(text=text)
        echo(text=failed.output)


def test_the_exit_task_runs_after_a_failure_and_gets_the_real_error(execute: Execute, task: FindTask) -> None:
    record = execute(exits)
    assert record["state"] == "FAILED"
    state = {each["path"]: each["state"] for each in record["tasks"]}
    assert state == {
        "exit-handler-1": "FAILED",
        "exit-handler-1/echo": "SUCCEEDED",
        "exit-handler-1/fail": "FAILED",
        "exit-handler-1/echo-2": "NOT_TRIGGERED",
        "report": "SUCCEEDED",
    }
    assert task(record, "echo-2")["note"] == "fail is FAILED"
    reported = task(record, "report")["outputs"]["parameters"]["Output"]
    expected = "fail: exit code 1: ValueError: 3 of 5 shards found"
    assert reported == f'["FAILED", "exit-handler-1", 9, "{expected}"]'
    assert record["error"] == expected
    assert record["failed_task"] == "exit-handler-1/fail"


@dsl.pipeline(name="goes-well")
def goes_well() -> None:
    with dsl.ExitHandler(report()):
        echo(text="fine")


def test_the_exit_task_gets_the_state_of_a_success(execute: Execute, task: FindTask) -> None:
    record = execute(goes_well)
    assert record["state"] == "SUCCEEDED"
    assert task(record, "report")["outputs"]["parameters"]["Output"] == '["SUCCEEDED", "exit-handler-1", null, null]'


@dsl.component(**STEP)
def succeed_on_attempt(wanted: int, counter: str) -> int:
    with open(counter, "a") as file:
        file.write("x")
    with open(counter) as file:
        attempt = len(file.read())
    if attempt < wanted:
        raise RuntimeError(f"attempt {attempt} is too early")
    return attempt


@dsl.pipeline(name="retries")
def retries(wanted: int, counter: str) -> None:
    succeed_on_attempt(wanted=wanted, counter=counter).set_retry(2, backoff_duration="3600s", backoff_factor=2)


def test_a_failed_step_is_retried_within_the_local_limit_of_waiting(
    execute: Execute, task: FindTask, log_text: ReadLog, tmp_path: Path
) -> None:
    record = execute(retries, {"wanted": 3, "counter": str(tmp_path / "counter")})
    retried = task(record, "succeed-on-attempt")
    assert (retried["state"], retried["attempts"], retried["outputs"]["parameters"]["Output"]) == ("SUCCEEDED", 3, 3)
    log = log_text(record, retried)
    assert "attempt 1 is too early" in log
    assert "--- attempt 3 of 3 ---" in log


def test_retries_end(execute: Execute, task: FindTask, tmp_path: Path) -> None:
    record = execute(retries, {"wanted": 9, "counter": str(tmp_path / "counter")})
    assert task(record, "succeed-on-attempt")["attempts"] == 3
    assert record["error"] == "succeed-on-attempt: exit code 1: RuntimeError: attempt 3 is too early"


@dsl.component(**STEP)
def meet(mine: str, other: str) -> None:
    import pathlib
    import time

    pathlib.Path(mine).touch()
    for _ in range(2400):
        if pathlib.Path(other).exists():
            return
        time.sleep(0.05)
    raise TimeoutError("the other step never ran at the same time")


@dsl.pipeline(name="beside")
def beside(a: str, b: str) -> None:
    meet(mine=a, other=b)
    meet(mine=b, other=a)


def test_independent_steps_run_at_the_same_time(execute: Execute, tmp_path: Path) -> None:
    assert execute(beside, {"a": str(tmp_path / "a"), "b": str(tmp_path / "b")})["state"] == "SUCCEEDED"


@dsl.component(**STEP)
def total(numbers: list) -> int:
    return sum(numbers)


@dsl.component(**STEP)
def join(parts: Input[list[Artifact]]) -> str:
    return "".join(open(part.path).read() for part in parts)


@dsl.pipeline(name="loops")
def loops(items: list = [1, 2, 3]) -> int:  # noqa: B006 - a literal in the compiled file
    with dsl.ParallelFor(items, parallelism=2) as item:
        each = number(n=item)
        with dsl.If(item == 2):
            echo(text="two")
    with dsl.ParallelFor([{"text": "a"}, {"text": "b"}]) as pair:
        part = write(text=pair.text)
    join(parts=dsl.Collected(part.outputs["out"]))
    return total(numbers=dsl.Collected(each.output)).output


def test_loops_run_each_item_and_collect_values_and_artifacts_in_order(execute: Execute, task: FindTask) -> None:
    record = execute(loops)
    assert record["outputs"]["parameters"]["Output"] == 6
    assert task(record, "total")["inputs"]["parameters"]["numbers"] == [1, 2, 3]
    assert task(record, "join")["outputs"]["parameters"]["Output"] == "ab"
    assert len([each for each in record["tasks"] if each["name"] == "echo" and each["state"] == "SUCCEEDED"]) == 1


def test_an_empty_loop_collects_nothing(execute: Execute) -> None:
    assert execute(loops, {"items": []})["outputs"]["parameters"]["Output"] == 0


@dsl.pipeline(name="failing")
def failing() -> None:
    with dsl.ExitHandler(report()):
        first = echo(text="runs before the failure")
        failed = fail(text="no data").after(first)
        recovery = echo(text="continues regardless").after(failed).ignore_upstream_failure()
        echo(text="independent").after(recovery)


@pytest.mark.parametrize("fail_fast", [False, True])
def test_after_a_failure_the_independent_steps_run_or_with_fail_fast_do_not(
    execute: Execute, task: FindTask, fail_fast: bool
) -> None:
    record = execute(failing, fail_fast=fail_fast)
    inside = {name: task(record, f"exit-handler-1/{name}")["state"] for name in ("echo", "fail", "echo-2", "echo-3")}
    wanted = "NOT_TRIGGERED" if fail_fast else "SUCCEEDED"
    assert inside == {"echo": "SUCCEEDED", "fail": "FAILED", "echo-2": "SUCCEEDED", "echo-3": wanted}
    # Exit tasks run in any case.
    assert task(record, "report")["state"] == "SUCCEEDED"
    assert record["state"] == "FAILED"
