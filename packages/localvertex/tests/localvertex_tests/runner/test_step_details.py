"""Details of steps: placeholders in inputs, artifacts at custom paths, exit tasks, logs of failures."""

from pathlib import Path

from kfp import dsl
from kfp.dsl import Dataset, Input, Output, PipelineTaskFinalStatus

from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask, ReadLog


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def fail(text: str) -> None:
    raise ValueError(text)


@dsl.pipeline(name="placeholders")
def placeholders() -> None:
    echo(
        text=f"{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}|{dsl.PIPELINE_TASK_NAME_PLACEHOLDER}|{dsl.PIPELINE_TASK_ID_PLACEHOLDER}|"
        f"{dsl.PIPELINE_JOB_ID_PLACEHOLDER}|{dsl.PIPELINE_ROOT_PLACEHOLDER}|{dsl.PIPELINE_JOB_RESOURCE_NAME_PLACEHOLDER}"
    ).set_display_name("a fine name")


def test_inputs_may_contain_placeholders_of_the_job_and_the_task(
    execute: Execute, task: FindTask, work_dir: Path
) -> None:
    record = execute(placeholders, run_id="placeholders")
    job, name, task_id, job_id, root, resource = task(record, "echo")["outputs"]["parameters"]["Output"].split("|")
    assert (job, name, root) == ("placeholders", "a fine name", str(work_dir))
    assert (job_id, resource) == (record["uuid"], record["resource_name"])
    assert task_id.isdigit()
    assert task_id != job_id


@dsl.component(**STEP)
def write_elsewhere(data: Output[Dataset]) -> None:
    import os

    data.custom_path = "deep/down/data.txt"
    os.makedirs("deep/down")
    with open(data.path, "w") as file:
        file.write("from elsewhere")


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.pipeline(name="elsewhere")
def elsewhere() -> None:
    read(data=write_elsewhere().outputs["data"])


def test_an_artifact_at_a_custom_path_is_moved_to_its_uri(execute: Execute, task: FindTask) -> None:
    record = execute(elsewhere)
    assert task(record, "read")["outputs"]["parameters"]["Output"] == "from elsewhere"


@dsl.component(**STEP)
def state_of(status: PipelineTaskFinalStatus, text: str = "") -> str:
    return f"{text}{status.state}"


@dsl.pipeline
def clean_up(text: str) -> str:
    return echo(text=f"{text} and done").output


@dsl.pipeline(name="exit-tasks")
def exit_tasks(text: str = "no") -> None:
    with dsl.ExitHandler(state_of(text="first: ")):
        fail(text=text)
    with dsl.ExitHandler(state_of(text="second: ")):
        echo(text=text)
    with dsl.ExitHandler(clean_up(text=text)):
        fail(text=text)


def test_each_exit_handler_has_its_own_exit_task_which_may_be_a_pipeline(execute: Execute, task: FindTask) -> None:
    record = execute(exit_tasks)
    assert record["state"] == "FAILED"
    states = [
        task(record, name)["outputs"]["parameters"]["Output"] for name in ("state-of", "state-of-2", "clean-up/echo")
    ]
    assert states == ["first: FAILED", "second: SUCCEEDED", "no and done"]


@dsl.component(**STEP)
def quit_silently(options: dict) -> None:
    import sys

    print("two options are read")
    sys.exit(3)


@dsl.pipeline(name="dumps")
def dumps() -> None:
    quit_silently(options={f"key{n}": n for n in range(100)})


def test_the_shown_end_of_a_log_omits_what_kfp_writes_in_every_step(
    execute: Execute, task: FindTask, command: Command, compiled: Compile, log_text: ReadLog
) -> None:
    record = execute(dumps)
    assert "Got executor_input" in log_text(record, task(record, "quit-silently"))
    run = report_data(Path(record["work_dir"]) / record["run_id"] / "run.html")["run"]
    done = command("run", compiled(dumps))
    for text in ("\n".join([run["error"], *run["failure"]["lines"]]), done.stdout):
        assert "two options are read" in text
        assert "Loading KFP component" not in text
        assert "key42" not in text


@dsl.component(**STEP)
def count_beside(folder: str, me: int) -> int:
    import pathlib
    import time

    mine = pathlib.Path(folder) / str(me)
    mine.touch()
    time.sleep(0.3)
    beside = len(list(mine.parent.iterdir()))
    mine.unlink()
    return beside


@dsl.pipeline(name="few")
def few(folder: str) -> None:
    with dsl.ParallelFor([1, 2, 3, 4, 5], parallelism=2) as item:
        count_beside(folder=folder, me=item)


def test_a_loop_limits_its_parallel_iterations(execute: Execute, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    record = execute(few, {"folder": str(tmp_path / "beside")}, max_parallel=5)
    steps = [each for each in record["tasks"] if each["kind"] == "step"]
    beside = [each["outputs"]["parameters"]["Output"] for each in steps]
    assert len(beside) == 5
    assert max(beside) <= 2
