"""Runs that were killed, stopped or failed are resumed."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from kfp import dsl
from kfp.dsl import Dataset, Input, Output, PipelineTaskFinalStatus

import localvertex
from localvertex.store.record import read as read_record
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask
from vertex_testing.server import wait_until


@dsl.component(**STEP)
def work(folder: str, name: str, data: Output[Dataset], seconds: float = 0.0) -> str:
    """Leave one file per run of this step; fail when an earlier process of the same step is still running."""
    import fcntl
    import pathlib
    import time

    mine = pathlib.Path(folder) / f"{name}.{time.time_ns()}"
    for other in mine.parent.glob(f"{name}.*"):
        # Its process holds the lock as long as it lives.
        with other.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with mine.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        time.sleep(seconds)
    pathlib.Path(data.path).write_text(name)
    data.metadata["name"] = name
    return name


@dsl.component(**STEP)
def fail_unless(there: str, data: Input[Dataset]) -> str:
    import pathlib

    if not pathlib.Path(there).exists():
        raise RuntimeError(f"{there} is missing")
    return data.metadata["name"]


@dsl.component(**STEP)
def report(status: PipelineTaskFinalStatus) -> str:
    return status.state


@dsl.pipeline
def inner(folder: str, name: str) -> str:
    first = work(folder=folder, name=name)
    return work(folder=folder, name=f"{name}-{first.outputs['Output']}").outputs["Output"]


@dsl.pipeline(name="resumable")
def resumable(folder: str, there: str) -> None:
    with dsl.ExitHandler(report()):
        first = work(folder=folder, name="first").set_caching_options(False)
        nested = inner(folder=folder, name="nested")
        checked = fail_unless(there=there, data=first.outputs["data"])
        with dsl.If(first.outputs["Output"] == "first"):
            work(folder=folder, name="branch")
        with dsl.ParallelFor(["a", "b"]) as item:
            each = work(folder=folder, name=item)
        work(folder=folder, name=f"last-{nested.output}-{checked.output}").after(each)


def count(folder: Path) -> dict[str, int]:
    """Count how often each step has run."""
    names = [path.name.rpartition(".")[0] for path in folder.iterdir() if path.name.rpartition(".")[2].isdigit()]
    return {name: names.count(name) for name in names}


ONCE = {"first": 1, "nested": 1, "nested-nested": 1, "branch": 1, "a": 1, "b": 1}


def test_a_failed_run_is_resumed_with_the_steps_that_had_not_succeeded(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    folder, there = tmp_path / "steps", tmp_path / "there"
    folder.mkdir()
    failed = execute(resumable, {"folder": str(folder), "there": str(there)}, run_id="again", use_cache=False)
    assert failed["state"] == "FAILED"
    assert task(failed, "report")["outputs"]["parameters"]["Output"] == "FAILED"
    assert count(folder) == ONCE
    there.touch()
    # The compiled file may be deleted: the run has a copy.
    Path(failed["file"]).unlink()
    record = localvertex.resume("again", options=localvertex.Options(work_dir=work_dir, use_cache=False))
    assert record["state"] == "SUCCEEDED"
    assert count(folder) == {**ONCE, "last-nested-nested-first": 1}
    assert task(record, "report")["outputs"]["parameters"]["Output"] == "SUCCEEDED"
    states = {each["path"]: each["restored"] for each in record["tasks"] if each["kind"] == "step"}
    assert {path for path, restored in states.items() if not restored} == {
        "exit-handler-1/fail-unless",
        "exit-handler-1/work-4",
        "report",
    }
    before, after = (task(each, "exit-handler-1/work") for each in (failed, record))
    kept = ("outputs", "start_time", "end_time", "log", "attempts", "exit_code")
    assert [before[name] for name in kept] == [after[name] for name in kept]
    for name in ("run_id", "uuid", "create_time", "start_time", "resource_name", "file", "sha256", "parameters"):
        assert record[name] == failed[name]
    assert (failed["resume_times"], len(record["resume_times"])) == ([], 1)
    # A finished run is returned, not run.
    assert localvertex.resume("again", options=localvertex.Options(work_dir=work_dir)) == json.loads(json.dumps(record))


def test_steps_after_a_repeated_step_run_again(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"

    @dsl.pipeline(name="followed")
    def followed(folder: str, there: str) -> None:
        first = work(folder=folder, name="first")
        failed = fail_unless(there=there, data=first.outputs["data"])
        work(folder=folder, name="after", seconds=0.0).after(failed).ignore_upstream_failure()

    failed = execute(followed, {"folder": str(tmp_path), "there": str(there)}, run_id="followed", use_cache=False)
    assert failed["state"] == "FAILED"
    assert count(tmp_path) == {"first": 1, "after": 1}
    there.touch()
    record = localvertex.resume("followed", options=localvertex.Options(work_dir=work_dir, use_cache=False))
    assert task(record, "fail-unless")["state"] == "SUCCEEDED"
    assert count(tmp_path) == {"first": 1, "after": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "nothing to run: give a compiled FILE, or --resume RUN"),
        (("p.json", "--resume", "x"), "leave out FILE"),
        (("--resume", "x", "--parameter", "a=1", "--run-id", "y"), "leave out --parameter and --run-id"),
        (("--resume", "x"), "no runs in 'runs'"),
    ],
)
def test_options_that_contradict_resume_are_refused(
    command: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = command("run", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_that_is_running_changed_or_moved_is_not_resumed(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    how = localvertex.Options(work_dir=work_dir, grace_seconds=0)
    failed = execute(resumable, {"folder": str(tmp_path), "there": str(tmp_path / "no")}, run_id="one")
    run_dir = work_dir / "one"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(localvertex.runner.engine.run_folder, "MARGIN_SECONDS", 0.2)
        with (
            localvertex.runner.engine.run_folder.lock(run_dir),
            pytest.raises(localvertex.UserError, match="still running"),
        ):
            localvertex.resume("one", options=how)
    (run_dir / "run.json").write_text(json.dumps(failed | {"uuid": None, "work_dir": "/elsewhere"}))
    with pytest.raises(localvertex.UserError, match="was run in /elsewhere, where its artifacts are"):
        localvertex.resume("one", options=how)
    (run_dir / "run.json").write_text(json.dumps(failed))
    copy = run_dir / "pipeline.json"
    copy.write_text(copy.read_text() + " ")
    with pytest.raises(localvertex.UserError, match="is not the file that one was started with"):
        localvertex.resume("one", options=how)
    copy.unlink()
    with pytest.raises(localvertex.UserError, match="has no copy of its compiled pipeline"):
        localvertex.resume("one", options=how)


def processes_of(mark: str) -> list[psutil.Process]:
    """Return every process that inherited the mark, except zombies."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("RUN_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass
    return found


@dsl.pipeline(name="killed")
def killed(folder: str) -> None:
    first = work(folder=folder, name="first", seconds=0.05)
    nested = inner(folder=folder, name="nested")
    with dsl.If(first.outputs["Output"] == "first"):
        work(folder=folder, name="branch", seconds=0.05)
    with dsl.ParallelFor(["a", "b"]) as item:
        each = work(folder=folder, name=item, seconds=0.05)
    work(folder=folder, name=f"last-{nested.output}").after(each)


NUM_KILLS, NUM_STEPS = 50, 7


@pytest.mark.slow(first=True)
@pytest.mark.soak
def test_fifty_runs_killed_at_random_times_leave_no_processes_and_are_finished(
    compiled: Compile, tmp_path: Path
) -> None:
    file, seed = compiled(killed), random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    num_restored = num_repeated = 0
    for number in range(NUM_KILLS):
        folder, mark = tmp_path / f"steps-{number}", uuid4().hex
        folder.mkdir()
        words = [sys.executable, "-m", "localvertex", "run", "--work-dir", str(tmp_path / "runs"), "--no-cache"]
        words += ["--grace", "0.5"]
        env = os.environ | {"RUN_MARK": mark}
        start = [*words, "--run-id", f"r{number}", "--parameter", f"folder={folder}", str(file)]
        runner = subprocess.Popen(start, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        record_file = tmp_path / "runs" / f"r{number}" / "run.json"
        # Steps count, not seconds: on a slow machine, too, the kills hit all parts of the pipeline.
        num_begun = moments.randrange(NUM_STEPS + 1)
        while not (record_file.exists() and len(count(folder)) >= num_begun) and runner.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.1))
        runner.kill()
        runner.communicate()
        before = read_record(record_file.parent)
        done = {
            each["path"]: each for each in before["tasks"] if each["kind"] == "step" and each["state"] == "SUCCEEDED"
        }
        # Immediately, while processes of the killed runner may still be ending: the step itself would notice.
        resumed = subprocess.run(
            [*words, "--resume", f"r{number}"], env=env, capture_output=True, text=True, timeout=120
        )
        assert resumed.returncode == 0, (seed, number, resumed.stdout, resumed.stderr)
        record = json.loads(record_file.read_text())
        assert record["state"] == "SUCCEEDED"
        again = [each for each in record["tasks"] if each["path"] in done and not each["restored"]]
        assert before["state"] == "SUCCEEDED" or again == [], (seed, number)
        runs = count(folder)
        assert set(runs) == {*ONCE, "last-nested-nested"}
        finished = {each["outputs"]["parameters"]["Output"] for each in done.values()}
        assert all(runs[name] == 1 for name in finished), (seed, number, runs)
        # The supervisor of the last step reports its end, and then ends by itself.
        wait_until(lambda mark=mark: processes_of(mark) == [])
        num_restored += len(done)
        num_repeated += sum(runs.values()) - len(runs)
    # The kills hit running pipelines: some steps were found finished, and some unfinished.
    print(f"restored {num_restored}, repeated {num_repeated}")
    assert num_restored > NUM_KILLS
    assert num_repeated > 0
