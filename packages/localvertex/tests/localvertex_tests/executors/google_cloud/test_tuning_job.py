"""HyperparameterTuningJobRunOp runs its trials here, as the service would."""

import json
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.tuning import ACCURACY, KIND, NAME, RATE, UNITS, pool, starts, trials_of, tune

from localvertex.jobs import JobStatus, stalls
from localvertex.jobs.tuning import run as tuning_run
from vertex_testing.html import report_data
from vertex_testing.runs import Execute, FindTask

PAIRS = """
(folder / f"running-{trial}").touch()
wait_for(folder / f"start-{(int(trial) - 1 ^ 1) + 1}")
(folder / f"together-{trial}").write_text(str(len(list(folder.glob("running-*")))))
value = int(given["units"]) / 10 + (given["kind"] == "b")
report("accuracy", value, 1)
report("accuracy", value + 0.05, 2)
report("accuracy", value - 0.05, 3)
(folder / f"running-{trial}").unlink()
"""
"""Reports three times; every trial waits until the other one of its pair has started, so that two run at a time."""


def test_six_trials_of_a_grid_run_two_at_a_time_and_the_best_measurement_counts(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    given = {"pools": [pool(PAIRS, tmp_path)], "parameters": [UNITS, KIND], "base": f"{tmp_path}/out/"}
    record = execute(tune, given, run_id="grid", project="p", region="europe-west4")
    assert record["state"] == "SUCCEEDED", record["error"]
    found = starts(tmp_path)
    points = [(units, kind) for units in (1, 2, 3) for kind in ("a", "b")]
    assert {trial: each[0][0] for trial, each in found.items()} == {
        trial: [f"--units={units}", f"--kind={kind}"] for trial, (units, kind) in enumerate(points, start=1)
    }
    assert all(len(each) == 1 for each in found.values())
    assert {path.read_text() for path in tmp_path.glob("together-*")} <= {"1", "2"}
    trials = trials_of(work_dir, "grid")
    assert [trial["state"] for trial in trials] == ["SUCCEEDED"] * 6
    assert [trial["finalMeasurement"]["stepCount"] for trial in trials] == ["2"] * 6
    values = [trial["finalMeasurement"]["metrics"][0]["value"] for trial in trials]
    assert values == [pytest.approx(units / 10 + (kind == "b") + 0.05) for units, kind in points]
    resource = json.loads(task(record, NAME)["outputs"]["parameters"]["gcp_resources"])["resources"][0]
    assert resource["resourceType"] == "HyperparameterTuningJob"
    prefix = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/"
    assert resource["resourceUri"].startswith(f"{prefix}hyperparameterTuningJobs/")
    assert record["warnings"] == []


def test_a_trial_has_its_own_output_directory_number_and_log(execute: Execute, work_dir: Path, tmp_path: Path) -> None:
    given = {"pools": [pool("print('trial', trial); report('accuracy', 1, 1)", tmp_path)], "parameters": [KIND]}
    record = execute(tune, {**given, "base": f"{tmp_path}/out"}, run_id="own")
    assert record["state"] == "SUCCEEDED", record["error"]
    assert len(trials_of(work_dir, "own")) == 2, "the grid has two points"
    for trial in (1, 2):
        _, seen = starts(tmp_path)[trial][0]
        assert seen["AIP_MODEL_DIR"] == f"{tmp_path}/out/{trial}/model/"
        assert seen["AIP_CHECKPOINT_DIR"] == f"{tmp_path}/out/{trial}/checkpoints/"
        cluster = json.loads(seen["CLUSTER_SPEC"])
        assert cluster["task"]["trial"] == str(trial)
        spec = json.loads(cluster["job"])
        assert spec["base_output_directory"] == {"output_uri_prefix": f"{tmp_path}/out/{trial}"}
        assert spec["worker_pool_specs"][0]["container_spec"]["args"] == [f"--kind={'ab'[trial - 1]}"]
        folder = work_dir / "own" / NAME / "trials" / str(trial)
        assert (folder / "workerpool0-0.log").read_text() == f"trial {trial}\n"
        assert json.loads((folder / "trial.json").read_text())["state"] == "SUCCEEDED"
        log = f"{NAME}/trials/{trial}/workerpool0-0.log"
        events = report_data(work_dir / "own" / "run.html")["events"]
        assert log in [f"{each['task']}/{each['file']}" for name, each in events if name == "log"]


def test_the_last_measurement_counts_where_the_study_says_so(execute: Execute, work_dir: Path, tmp_path: Path) -> None:
    code = "report('accuracy', 0.9, 1); report('accuracy', 0.1, 2)"
    given = {"pools": [pool(code, tmp_path)], "parameters": [KIND], "selection": "LAST_MEASUREMENT"}
    assert execute(tune, given, run_id="last")["state"] == "SUCCEEDED"
    assert trials_of(work_dir, "last")[0]["finalMeasurement"] == {
        "stepCount": "2",
        "metrics": [{"metricId": "accuracy", "value": 0.1}],
    }


def test_a_bayesian_search_is_random_which_is_said_once_and_the_same_in_every_run(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    code = "report('accuracy', given['rate'], 1)"
    given = {"pools": [pool(code, tmp_path)], "parameters": [RATE], "algorithm": "ALGORITHM_UNSPECIFIED", "trials": 3}
    found = []
    for run_id in ("one", "two"):
        record = execute(tune, given, run_id=run_id, use_cache=False)
        assert len([text for text in record["warnings"] if "Bayesian" in text and "seed 0" in text]) == 1
        found.append([each["parameters"] for each in trials_of(work_dir, run_id)])
    assert found[0] == found[1]
    values = [each[0]["value"] for each in found[0]]
    assert len(set(values)) == 3
    assert all(1e-4 <= each <= 1e-1 for each in values)


FAILS = """
if given["units"] in ("2", "3"):
    sys.exit(2)
report("accuracy", 1, 1)
"""


@pytest.mark.parametrize(
    ("failures", "state", "error"),
    [
        (2, "FAILED", f"{NAME}: 2 failed trials (max_failed_trial_count): trial 3: "),
        (3, "SUCCEEDED", None),
        (0, "SUCCEEDED", None),
    ],
)
def test_the_number_of_failed_trials_decides(
    execute: Execute, work_dir: Path, tmp_path: Path, failures: int, state: str, error: str | None
) -> None:
    given = {"pools": [pool(FAILS, tmp_path)], "parameters": [UNITS], "parallel": 1, "failures": failures}
    record = execute(tune, given, run_id="fails")
    assert record["state"] == state
    assert (record["error"] or "").startswith(error or "")
    trials = trials_of(work_dir, "fails")
    assert [each["state"] for each in trials] == ["SUCCEEDED", "INFEASIBLE", "INFEASIBLE"]
    assert "exit code 2" in trials[1]["infeasibleReason"]


def test_a_failure_before_any_success_fails_the_job_and_stops_what_runs(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    code = "wait_for(folder / 'start-2'); sys.exit(2) if trial == '1' else time.sleep(600)"
    given = {"pools": [pool(code, tmp_path)], "parameters": [UNITS]}
    record = execute(tune, given, run_id="first")
    assert record["error"].startswith(f"{NAME}: a trial failed before any succeeded: trial 1: ")
    assert [each["state"] for each in trials_of(work_dir, "first")] == ["INFEASIBLE", "STOPPING"]
    assert sorted(starts(tmp_path)) == [1, 2]


def test_a_trial_without_a_measurement_is_infeasible_and_says_what_it_reported(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    code = "report('acc', 1, 1) if trial == '1' else None"
    record = execute(tune, {"pools": [pool(code, tmp_path)], "parameters": [KIND]}, run_id="none")
    assert record["state"] == "SUCCEEDED", record["error"]
    first, second = trials_of(work_dir, "none")
    assert first["state"] == second["state"] == "INFEASIBLE"
    assert "reported only acc" in first["infeasibleReason"]
    assert "reported nothing" in second["infeasibleReason"]
    assert len([text for text in record["warnings"] if "the study's metrics are accuracy" in text]) == 2


def test_parallel_trials_share_no_gpu(execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    gpus = {"accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 2}
    code = "wait_for(folder / f'start-{(int(trial) - 1 ^ 1) + 1}'); report('accuracy', 1, 1)"
    given = {"pools": [pool(code, tmp_path, **gpus)], "parameters": [UNITS, KIND], "parallel": 4, "trials": 4}
    record = execute(tune, given)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert [text for text in record["warnings"] if "2 of the 4 parallel trials run at a time" in text]
    seen = {trial: each[0][1]["CUDA_VISIBLE_DEVICES"] for trial, each in starts(tmp_path).items()}
    assert {seen[1], seen[2]} == {seen[3], seen[4]} == {"0,1", "2,3"}


def test_no_file_of_a_trial_contains_a_secret(execute: Execute, work_dir: Path, tmp_path: Path) -> None:
    given = pool("print('no', os.environ['DB_PASSWORD']); sys.exit(2)", tmp_path)
    given["container_spec"]["env"].append({"name": "DB_PASSWORD", "value": "planted-secret"})
    record = execute(tune, {"pools": [given], "parameters": [KIND]}, run_id="secret")
    assert "no (secret removed)" in record["error"]
    written = [path for path in (work_dir / "secret" / NAME).rglob("*") if path.is_file()]
    assert len(written) > 5
    found = [path.name for path in written if "planted-secret" in path.read_text()]
    assert found == []


def test_replicas_of_a_trial_restart_by_the_rules_of_custom_jobs(
    execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    code = "(sys.exit(134) if (folder / f'start-{trial}').read_text().count('\\n') < 3 else report('accuracy', 1, 1))"
    record = execute(tune, {"pools": [pool(code, tmp_path)], "parameters": [KIND], "metrics": [ACCURACY]})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert {trial: len(each) for trial, each in starts(tmp_path).items()} == {1: 3, 2: 3}
    assert task(record, NAME)["custom_job"]["num_restarts"] == 4


@pytest.mark.slow
def test_a_trial_that_makes_no_progress_is_named_in_the_status_of_its_job(
    execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "_FROZEN_SECONDS", 0.5)
    monkeypatch.setattr(stalls, "_CHECK_SECONDS", 0.2)
    seen: list[str] = []

    def new_status(**fields: Any) -> JobStatus:
        seen.append(str(fields.get("stalled", "")))
        return JobStatus(**fields)

    monkeypatch.setattr(tuning_run, "JobStatus", new_status)
    freeze = """
import os, signal, subprocess, sys
wake = "import os, signal, sys, time; time.sleep(3); os.kill(int(sys.argv[1]), signal.SIGCONT)"
subprocess.Popen([sys.executable, "-c", wake, str(os.getpid())])
os.kill(os.getpid(), signal.SIGSTOP)
report("accuracy", 1, 1)
"""
    record = execute(tune, {"pools": [pool(freeze, tmp_path)], "parameters": [KIND], "metrics": [ACCURACY]})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert any("trial 1: no step for 0 min: workerpool0-0 is frozen" in text for text in seen)
    assert task(record, NAME)["custom_job"]["stalled"] == ""
