"""Tuning jobs whose run was killed or stopped: a resume repeats only the trials that had not finished."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from localvertex_tests.support.tuning import KIND, UNITS, pool, starts, trials_of, tune

import localvertex
from vertex_testing.processes import working_in
from vertex_testing.runs import Compile

THIRD_WAITS = """
if trial == "3" and not (folder / "go").exists():
    (folder / "third").touch()
    time.sleep(600)
report("accuracy", int(given["units"]), 1)
"""


@pytest.mark.slow
def test_a_killed_run_repeats_only_the_trials_that_had_not_finished(
    compiled: Compile, work_dir: Path, tmp_path: Path
) -> None:
    given = {"pools": [pool(THIRD_WAITS, tmp_path)], "parameters": [UNITS, KIND], "parallel": 1, "trials": 4}
    (tmp_path / "parameters.json").write_text(json.dumps(given))
    words = [sys.executable, "-m", "localvertex", "run", compiled(tune), "--run-id=killed", f"--work-dir={work_dir}"]
    process = subprocess.Popen([*words, f"--parameter-file={tmp_path}/parameters.json", "--grace=1"])
    while not (tmp_path / "third").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    record = localvertex.resume("killed", options=localvertex.Options(work_dir=work_dir, grace_seconds=1))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert not working_in(tmp_path)
    assert {trial: len(each) for trial, each in starts(tmp_path).items()} == {1: 1, 2: 1, 3: 2, 4: 1}
    assert [each["state"] for each in trials_of(work_dir, "killed")] == ["SUCCEEDED"] * 4


def test_a_stopped_run_leaves_no_trial_running_and_a_resumed_one_repeats_none_that_has_finished(
    compiled: Compile, work_dir: Path, tmp_path: Path
) -> None:
    options = localvertex.Options(work_dir=work_dir, grace_seconds=5)
    given = {"pools": [pool(THIRD_WAITS, tmp_path)], "parameters": [UNITS, KIND], "parallel": 1, "trials": 4}
    run = localvertex.prepare(compiled(tune), parameters=given, options=replace(options, run_id="stopped"))
    states: list[str] = []
    thread = threading.Thread(target=lambda: states.append(run.execute()["state"]))
    thread.start()
    while not (tmp_path / "third").exists():
        assert thread.is_alive()
        thread.join(0.05)
    run.stop()
    thread.join()
    assert states == ["CANCELLED"]
    assert not working_in(tmp_path)
    assert [each["state"] for each in trials_of(work_dir, "stopped")] == ["SUCCEEDED", "SUCCEEDED", "STOPPING"]
    (tmp_path / "go").touch()
    record = localvertex.resume("stopped", options=options)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert {trial: len(each) for trial, each in starts(tmp_path).items()} == {1: 1, 2: 1, 3: 2, 4: 1}
    assert [each["state"] for each in trials_of(work_dir, "stopped")] == ["SUCCEEDED"] * 4
