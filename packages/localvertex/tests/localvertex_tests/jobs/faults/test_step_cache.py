"""A fault that was asked for is never skipped because the outputs of the job are in the step cache."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.support.tuning import KIND, NAME, pool, tune

from localvertex.jobs.faults.faults import parse
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

FAULT = "SIGKILL workerpool0-0 at 1s"

STARTS = """
import pathlib, sys, time
starts = pathlib.Path(sys.argv[1])
with starts.open("a") as file:
    file.write("x")
# The second start, of the run with faults, waits to be killed.
time.sleep(600 if starts.stat().st_size == 2 else 0)
"""


@dsl.component(**STEP)
def check() -> bool:
    return True


@dsl.pipeline(name="trained-twice")
def trained_twice(pools: list) -> None:
    CustomTrainingJobOp(display_name="a", worker_pool_specs=pools).after(check())


@pytest.fixture
def pools(tmp_path: Path) -> list[dict[str, Any]]:
    container = {"image_uri": "x", "command": ["python", "-c", STARTS, str(tmp_path / "starts")]}
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


def test_a_run_with_faults_starts_the_job(
    compiled: Compile, command: Command, work_dir: Path, pools: list[Any], tmp_path: Path
) -> None:
    file = compiled(trained_twice)
    given = ["-p", f"pools={json.dumps(pools)}", "--grace", "0"]
    first = command("run", file, "--run-id", "first", *given)
    assert first.returncode == 0, first.stdout + first.stderr
    second = command("run", file, "--run-id", "second", *given, "--fault", FAULT)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "did not happen" not in second.stdout
    assert f"fault: {FAULT}" in (work_dir / "second" / "custom-training-job" / "log.txt").read_text()
    tasks = {each["name"]: each for each in json.loads((work_dir / "second" / "run.json").read_text())["tasks"]}
    # Only custom jobs have faults, so all other steps still come from the cache.
    assert {name: each["state"] for name, each in tasks.items()} == {
        "check": "SKIPPED",
        "custom-training-job": "SUCCEEDED",
    }
    # A run without faults still uses the result of the first one.
    third = command("run", file, "--run-id", "third", *given)
    assert third.returncode == 0
    assert (tmp_path / "starts").read_text() == "xxx"


def test_faults_that_the_job_cannot_have_are_not_skipped_either(
    compiled: Compile, command: Command, pools: list[Any]
) -> None:
    file = compiled(trained_twice)
    given = ["-p", f"pools={json.dumps(pools)}", "--grace", "0"]
    assert command("run", file, *given).returncode == 0
    for fault, error in (
        ("SIGKILL workerpool0-0 at 50%", "base_output_directory"),
        ("SIGKILL workerpool3-0 at 1s", "the job has no workerpool3-0"),
    ):
        refused = command("run", file, *given, "--fault", fault)
        assert refused.returncode == 1, refused.stdout
        assert error in refused.stdout + refused.stderr


TRIALS = """
report("accuracy", 1, 1)
time.sleep(600 if (folder / f"start-{trial}").read_text().count(chr(10)) == 2 else 0)
"""


def test_the_trials_of_a_tuning_job_get_the_faults_too(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    given = {"pools": [pool(TRIALS, tmp_path)], "parameters": [KIND], "base": f"{tmp_path}/out"}
    assert execute(tune, given, run_id="first")["state"] == "SUCCEEDED"
    again = execute(tune, given, run_id="second", faults=(parse(FAULT),))
    assert (again["state"], again["unused_faults"]) == ("SUCCEEDED", [])
    assert task(again, NAME)["cache_hit"] is False
    logs = [path.read_text() for path in (work_dir / "second" / NAME / "trials").glob("*/log.txt")]
    assert sum(f"fault: {FAULT}" in text for text in logs) == 2
