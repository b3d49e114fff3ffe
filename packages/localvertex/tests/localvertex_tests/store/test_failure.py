"""A failed step as a sentence, with the log that explains it."""

from pathlib import Path
from typing import Any

import pytest

from localvertex._base.compiled.spec import Component, Dag, TaskSpec
from localvertex.store.steps import failure, logs as step_logs
from localvertex.store.task import State, Task


def new_task(name: str, *, parent: Task | None = None, component: Component, **values: Any) -> Task:
    """Return a task below its parent."""
    path = (*parent.path, name) if parent else ()
    folder = Path("run").joinpath(*path)
    task = Task(
        spec=TaskSpec(name=name, display_name=name, component="c"),
        component=component,
        name=name,
        path=path,
        folder=folder,
        parent=parent,
    )
    if parent:
        parent.children[name] = task
    for field, value in values.items():
        setattr(task, field, value)
    return task


@pytest.fixture
def root() -> Task:
    """Return a run whose dag failed because the second of its steps failed."""
    dag, step = Component(name="d", dag=Dag(tasks={})), Component(name="c", executor="e")
    root = new_task("root", component=dag, state=State.FAILED, error="failed tasks: inner")
    inner = new_task("inner", parent=root, component=dag, state=State.FAILED, error="failed tasks: train")
    new_task("prepare", parent=inner, component=step, state=State.SUCCEEDED)
    new_task("train", parent=inner, component=step, state=State.FAILED, error="exit code 1: no images")
    return root


def test_the_error_of_a_run_is_that_of_its_first_failed_step(root: Task) -> None:
    assert failure.of_run(root) == {
        "failed_task": "inner/train",
        "error": "inner/train: exit code 1: no images",
    }


def test_without_a_failed_step_it_is_that_of_the_dag_or_of_the_run(root: Task) -> None:
    root.children["inner"].children["train"].state = State.CANCELLED
    assert failure.of_run(root) == {"failed_task": "inner", "error": "inner: failed tasks: train"}
    root.children["inner"].state = State.CANCELLED
    assert failure.of_run(root) == {"failed_task": None, "error": "failed tasks: inner"}
    root.error = ""
    assert failure.of_run(root) == {"failed_task": None, "error": None}


def test_the_log_of_a_custom_job_is_that_of_its_first_replica_with_output(tmp_path: Path) -> None:
    content = {"tasks": [{"path": "train", "log": "train/log.txt"}], "failed_task": "train"}
    assert failure.log_of(content, tmp_path) == (None, [])
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "log.txt").write_text("custom job\n")
    (tmp_path / "train" / "workerpool0-0.log").touch()
    assert failure.log_of(content, tmp_path) == (tmp_path / "train" / "log.txt", ["custom job"])
    (tmp_path / "train" / "workerpool1-0.log").write_text("one\nno images\n")
    assert failure.log_of(content, tmp_path) == (tmp_path / "train" / "workerpool1-0.log", ["one", "no images"])
    assert failure.log_of(content | {"failed_task": None}, tmp_path) == (None, [])


def test_what_kfp_reports_of_every_step_is_left_out_of_the_log_that_explains_a_failure(tmp_path: Path) -> None:
    content = {"tasks": [{"path": "train", "log": "log.txt", "error": "exit code 137"}], "failed_task": "train"}
    log = tmp_path / "log.txt"
    routine = [f"[KFP Executor 2026-11-22 19:22:20,297 INFO]: Loading KFP component {n}" for n in range(8)]
    log.write_text("\n".join([*routine, *map(str, range(30)), *routine[:3]]))
    assert failure.log_of(content, tmp_path) == (log, [str(n) for n in range(10, 30)])
    log.write_text("\n".join(routine))
    assert failure.log_of(content, tmp_path) == (log, [])
    wrong = "[KFP Executor 2026-11-22 19:22:20,297 ERROR]: no such function"
    log.write_text("\n".join([wrong, *routine]))
    assert failure.log_of(content, tmp_path) == (log, [wrong])


def test_the_log_of_a_tuning_job_is_that_of_the_trial_that_ended_it(tmp_path: Path) -> None:
    job = {"failed_replica": "trials/10/workerpool0-0"}
    task = {"path": "tune", "log": "tune/log.txt", "error": "too many failed", "custom_job": job}
    content = {"tasks": [task], "failed_task": "tune"}
    for number in (1, 2, 10):
        (tmp_path / "tune" / "trials" / str(number)).mkdir(parents=True)
        (tmp_path / "tune" / "trials" / str(number) / "workerpool0-0.log").write_text(f"trial {number}\n")
    (tmp_path / "tune" / "log.txt").write_text("tuning job\n")
    (tmp_path / "tune" / "debug.log").write_text("of the program itself\n")
    tenth = tmp_path / "tune" / "trials" / "10" / "workerpool0-0.log"
    assert failure.log_of(content, tmp_path) == (tenth, ["trial 10"])
    job["failed_replica"] = "../tune/debug"
    assert failure.log_of(content, tmp_path) == (tmp_path / "tune" / "log.txt", ["tuning job"])
    assert step_logs.of_replicas(tmp_path / "tune")[-1] == tenth
