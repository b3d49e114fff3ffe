"""Faults that never happened are reported at the end of any run, and those that happened are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from localvertex.jobs import FaultLedger
from localvertex.jobs.faults.faults import parse
from vertex_testing.runs import STEP, Command, Compile

NO_JOB, JOB_ENDED = "no custom job was started", "the custom job ended before it was due"
NO_PROCESS = "no process was running there when it was due"


@dsl.component(**STEP)
def check(fails: bool) -> bool:
    if fails:
        raise ValueError("wrong data")
    return True


@dsl.pipeline(name="faulty")
def faulty(pools: list, base: str = "", fails: bool = False, twice: bool = False) -> None:
    checked = check(fails=fails)
    first = CustomTrainingJobOp(display_name="a", worker_pool_specs=pools, base_output_directory=base).after(checked)
    with dsl.If(twice == True):  # noqa: E712
        CustomTrainingJobOp(display_name="b", worker_pool_specs=pools, base_output_directory=base).after(first)


@pytest.fixture
def run(compiled: Compile, command: Command) -> Any:
    """Run a job with this code, and return the sentences about faults after the table of steps."""
    file = compiled(faulty)

    def run_(code: str, *words: str, state: str = "SUCCEEDED") -> list[str]:
        container = {"image_uri": "x", "command": ["python", "-c", code]}
        pools = [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]
        given = ["-p", f"pools={json.dumps(pools)}", "--grace", "0"]
        done = command("run", file, "--run-id", "r", *given, *words)
        assert f"r: {state}" in done.stdout, done.stdout + done.stderr
        _, _, end = done.stdout.partition("\nstep ")
        sentences = [line for line in end.splitlines() if line.startswith(("fault", "random"))]
        assert sentences == [
            line for line in command("show", "r").stdout.splitlines() if line.startswith(("fault", "random"))
        ]
        return sentences

    return run_


def test_a_run_that_fails_before_its_job(run: Any) -> None:
    words = ["--fault", "SIGKILL workerpool0-0 at 1s", "--fault", "preempt all every 45s", "-p", "fails=true"]
    assert run("", *words, state="FAILED") == [
        f"fault SIGKILL workerpool0-0 at 1s did not happen: {NO_JOB}",
        f"fault preempt all every 45s grace 30s did not happen: {NO_JOB}",
    ]


def test_a_job_that_ends_first_or_fails(run: Any) -> None:
    late = "SIGTERM workerpool0-0 at 900s grace 0s"
    assert run("import sys; sys.exit(2)", "--fault", late, state="FAILED") == [
        f"fault {late} did not happen: {JOB_ENDED}"
    ]


TRAIN_ONCE = """
import json, os, pathlib, sys, time
log = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"]) / "events" / "workerpool0-0.jsonl"
if not log.exists():
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"time": time.time(), "event": "steps", "last_step": 1, "num_steps": 2}) + chr(10))
    time.sleep(600)
"""


def test_a_fault_that_happened_in_one_of_two_jobs_is_not_reported(run: Any, tmp_path: Path) -> None:
    words = ["--fault", "SIGKILL workerpool0-0 at step 1", "-p", "twice=true", "-p", f"base={tmp_path / 'out'}"]
    assert run(TRAIN_ONCE, *words) == []


def test_a_fault_for_another_replica_is_an_error_and_did_not_happen(run: Any) -> None:
    text = "SIGKILL workerpool1-0 at 1s"
    assert run("", "--fault", text, state="FAILED") == [f"fault {text} did not happen: {NO_JOB}"]


def test_resuming_what_has_succeeded_runs_nothing_and_injects_nothing(run: Any, command: Command) -> None:
    text = "SIGKILL workerpool0-0 at 900s"
    assert run("", "--fault", text) == [f"fault {text} did not happen: {JOB_ENDED}"]
    done = command("run", "--resume", "r", "--fault", "SIGKILL workerpool0-0 at 1s")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "r has already succeeded; nothing was run"
    assert [line for line in done.stdout.splitlines() if line.startswith("fault")] == [
        f"fault SIGKILL workerpool0-0 at 1s did not happen: {NO_JOB}"
    ]


def test_what_happened_once_stays_so() -> None:
    fault, other = parse("SIGKILL workerpool0-0 at 1s"), parse("SIGSTOP workerpool0-0 at 2s")
    ledger = FaultLedger([fault, other])
    ledger.plan([fault, other])
    ledger.miss(fault)
    ledger.miss(other)
    ledger.plan([fault, other])
    assert ledger.unused == [f"fault {each} did not happen: {NO_PROCESS}" for each in (fault, other)]
    ledger.inject(fault)
    ledger.miss(fault)
    ledger.plan([fault])
    assert ledger.unused == [f"fault {other} did not happen: {NO_PROCESS}"]
