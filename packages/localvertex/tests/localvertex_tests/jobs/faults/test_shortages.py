"""Shortages of machines and of quota: which jobs meet one, for how long, and what the service answers."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.support.creating import candidate, parameters, starts

from localvertex import jobs
from localvertex._base.userinput.errors import UserError
from localvertex.errors import Cancelled
from localvertex.jobs.faults.faults import parse
from localvertex.jobs.faults.shortages import ShortageKind
from vertex_testing.runs import Execute, FindTask
from vertex_testing.server import Server, wait_until

INSUFFICIENT = (
    "Resources are insufficient in region: us-central1. Please try a different region or use a different accelerator."
)
L4 = {"machine_type": "g2-standard-12", "accelerator_type": "NVIDIA_L4", "accelerator_count": 1}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("stockout candidate  1", "stockout candidate 1"),
        ("STOCKOUT spot for 20s", "stockout SPOT for 20s"),
        ("quota us-central1", "quota us-central1"),
        ("queue all for 1.5 s", "queue all for 1.5s"),
    ],
)
def test_a_shortage_is_written_as_it_is_read(text: str, written: str) -> None:
    assert str(parse(text)) == written
    assert parse(written) == parse(text)


@pytest.mark.parametrize("text", ["queue all", "stockout", "quota somewhere", "stockout candidate x", "queue SPOT 20s"])
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError, match="--fault") as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def of(*texts: str) -> jobs.FaultLedger:
    return jobs.FaultLedger(map(parse, texts))


def job_of(message: dict[str, Any], region: str = "us-central1", **labels: str) -> jobs.CustomJob:
    return jobs.read_job(message | {"labels": labels}, region=region, warn=lambda text: None)


def test_a_shortage_concerns_its_place_and_lasts_from_the_first_job_on(message: Any) -> None:
    ledger = of("stockout SPOT for 1s", "stockout candidate 2", "stockout europe-west4", "quota us-central1")
    shortages, stockout = ledger.shortages, ShortageKind.STOCKOUT
    plain, spot = job_of(message(("", 1))), job_of(message(("", 1), strategy="SPOT"))
    assert shortages.find(stockout, plain) is None
    assert len(ledger.unused) == 4
    time.sleep(1.1)
    # No job has asked for Spot machines before.
    assert str(shortages.find(stockout, spot)) == "stockout SPOT for 1s"
    assert str(shortages.find(stockout, job_of(message(("", 1)), candidate="2"))) == "stockout candidate 2"
    assert shortages.find(stockout, job_of(message(("", 1)), candidate="1")) is None
    assert str(shortages.find(stockout, job_of(message(("", 1)), "europe-west4"))) == "stockout europe-west4"
    assert ledger.unused == ["fault quota us-central1 did not happen: no custom job asked for machines there"]
    wait_until(lambda: shortages.find(stockout, spot) is None, timeout_seconds=30)


def test_quota_is_named_as_the_service_does(message: Any) -> None:
    reports: list[str] = []
    shortages = of("quota all").shortages
    given = message(("", 1), ("", 3), strategy="SPOT")
    for pool in given["job_spec"]["worker_pool_specs"]:
        pool["machine_spec"] = L4
    for asked, metric in ((given, "preemptible_nvidia_l4_gpus"), (message(("", 1)), "cpus")):
        with pytest.raises(jobs.QuotaExceeded) as caught:
            shortages.check_quota(job_of(asked), reports.append)
        assert str(caught.value) == (
            f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_{metric}"
        )
    assert reports == ["fault: quota all: the job is not accepted"] * 2


Run = Callable[..., jobs.Outcome]


def test_without_machines_a_job_fails_and_starts_nothing(run: Run, message: Any, tmp_path: Path) -> None:
    seen: list[jobs.JobStatus] = []
    code = "from pathlib import Path; import sys; Path(sys.argv[1], 'started').touch()"
    outcome = run(message((code, 1)), ledger=of("stockout all"), observe=seen.append)
    assert (outcome.state, outcome.error) == (jobs.JobState.FAILED, INSUFFICIENT)
    assert (outcome.is_shortage, outcome.is_permanent) == (True, False)
    assert [each.state for each in seen] == ["JOB_STATE_PENDING", "JOB_STATE_FAILED"]
    assert not (tmp_path / "started").exists()
    assert "stockout all" in (tmp_path / "job" / "log.txt").read_text()


def test_in_a_queue_a_job_waits_and_runs(run: Run, message: Any) -> None:
    seen: list[jobs.JobStatus] = []
    start = time.monotonic()
    outcome = run(message(("", 1)), ledger=of("queue STANDARD for 1s"), observe=seen.append)
    assert outcome.state is jobs.JobState.SUCCEEDED
    assert time.monotonic() - start >= 1
    states = [each.state for each in seen]
    assert states[:2] == ["JOB_STATE_QUEUED", "JOB_STATE_RUNNING"]
    assert seen[0].events[0].text == "fault: queue STANDARD for 1s: the job is in the queue"


def flex_start(message: Any, **more: str) -> dict[str, Any]:
    given: dict[str, Any] = message(("", 1), strategy="FLEX_START", timeout="600s", **more)
    given["job_spec"]["worker_pool_specs"][0]["machine_spec"] = L4
    return given


def test_a_flexible_start_waits_for_machines(run: Run, message: Any) -> None:
    seen: list[jobs.JobStatus] = []
    given = flex_start(message, max_wait_duration="600s")
    outcome = run(given, ledger=of("stockout FLEX_START for 2s"), observe=seen.append)
    assert outcome.state is jobs.JobState.SUCCEEDED
    assert [each.state for each in seen[:2]] == ["JOB_STATE_PENDING", "JOB_STATE_RUNNING"]


def test_a_flexible_start_waits_no_longer_than_asked(run: Run, message: Any) -> None:
    outcome = run(flex_start(message, max_wait_duration="1s"), ledger=of("stockout all"))
    assert (outcome.state, outcome.error) == (jobs.JobState.FAILED, INSUFFICIENT)


@pytest.mark.parametrize("fault", ["stockout all", "queue all for 600s"])
def test_a_job_that_waits_can_be_cancelled(run: Run, message: Any, fault: str) -> None:
    cancel, seen = threading.Event(), list[jobs.JobStatus]()

    def observe(status: jobs.JobStatus) -> None:
        seen.append(status)
        cancel.set()

    with pytest.raises(Cancelled):
        run(flex_start(message, max_wait_duration="0s"), ledger=of(fault), observe=observe, cancel=cancel)
    assert seen[-1].state is jobs.JobState.CANCELLED


@dsl.pipeline(name="googles")
def googles(pools: list, strategy: str = "STANDARD") -> None:
    CustomTrainingJobOp(display_name="a", worker_pool_specs=pools, strategy=strategy)


def pools(code: str) -> list[dict[str, Any]]:
    container = {"image_uri": "x", "command": ["python", "-c", code]}
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


@pytest.mark.parametrize(
    ("fault", "part"),
    [("stockout us-central1", INSUFFICIENT), ("quota SPOT", "aiplatform.googleapis.com/custom_model_training_preempt")],
)
def test_a_job_of_google_s_operation_fails_with_the_text_of_the_service(
    execute: Execute, task: FindTask, fault: str, part: str
) -> None:
    faults = (parse(fault), parse("stockout europe-west4"))
    found = execute(googles, {"pools": pools("print()"), "strategy": "SPOT"}, faults=faults)
    entry = task(found, "custom-training-job")
    assert entry["state"] == "FAILED"
    assert part in entry["error"]
    assert found["unused_faults"] == [
        "fault stockout europe-west4 did not happen: no custom job asked for machines there"
    ]


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.slow
def test_a_step_moves_from_candidate_to_candidate(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    code = """
code, refused = create(candidates[0])
note("quota", [code, refused])
_, job = create(candidates[1])
pending = wait(job, "PENDING")
note("stockout", [pending, wait(job, *ENDED)])
_, job = create(candidates[2])
queued = wait(job, "QUEUED")
note("queue", [queued, wait(job, *ENDED)])
_, job = create(candidates[3])
pending = wait(job, "PENDING")
assert call("POST", f"/{number(job)}:cancel", {}, "us-west1")[0] == 200
note("cancelled", [pending, wait(job, *ENDED)])
"""
    flex = candidate(**L4, scheduling_strategy="FLEX_START", region="us-west1", max_wait_seconds=600)
    spot = candidate(scheduling_strategy="SPOT")
    values = parameters(tmp_path, code, candidate(), spot, candidate(region="europe-west4"), flex)
    texts = ("quota candidate 0", "stockout SPOT", "queue europe-west4 for 1s", "stockout FLEX_START")
    found = execute(starts, values, faults=tuple(map(parse, texts)))
    assert found["state"] == "SUCCEEDED", found
    assert found["unused_faults"] == []
    code, refused = read(tmp_path, "quota")
    assert (code, refused["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert refused["message"].endswith("aiplatform.googleapis.com/custom_model_training_cpus")
    _, failed = read(tmp_path, "stockout")
    assert (failed["state"], failed["error"]) == ("JOB_STATE_FAILED", {"code": 8, "message": INSUFFICIENT})
    assert ("startTime" in failed, "endTime" in failed) == (False, True)
    queued, ended = read(tmp_path, "queue")
    assert "startTime" not in queued
    assert (ended["state"], bool(ended["startTime"])) == ("JOB_STATE_SUCCEEDED", True)
    _, cancelled = read(tmp_path, "cancelled")
    assert (cancelled["state"], "startTime" in cancelled) == ("JOB_STATE_CANCELLED", False)
    assert task(found, "start-jobs")["custom_job"]["state"] == "JOB_STATE_CANCELLED"
    assert "custom job 'j'" in (work_dir / found["run_id"] / "start-jobs" / "log.txt").read_text()
    assert "JOB_STATE_CANCELLED" in (work_dir / found["run_id"] / "run.html").read_text()


@pytest.mark.slow
def test_a_fault_of_replicas_happens_once_in_the_jobs_of_a_step(execute: Execute, tmp_path: Path) -> None:
    code = """
for each in range(2):
    note(str(each), wait(create(attempt=each)[1], *ENDED))
"""
    # A killed replica starts again, and then ends.
    trains = "import os, time; time.sleep(3); print('pid', os.getpid())"
    values = parameters(tmp_path, code, trains=trains)
    found = execute(starts, values, faults=(parse("SIGKILL all at 1s"),))
    assert found["state"] == "SUCCEEDED", found
    assert found["unused_faults"] == []
    log = next((tmp_path / "runs").rglob("workerpool0-0.log")).read_text()
    # Once in the first job and once in the second.
    assert log.count("pid") == 2
    assert log.count("--- start 2 ---") == 1


@pytest.mark.slow
def test_a_server_has_shortages_for_the_jobs_of_clients(start_server: Callable[..., Server]) -> None:
    server = start_server(
        "--fault", "quota SPOT", "--fault", "stockout STANDARD for 30s", "--fault", "queue all for 1s"
    )
    body = {"displayName": "j", "jobSpec": {"workerPoolSpecs": pools("print()"), "scheduling": {"strategy": "SPOT"}}}
    answer = server.call("POST", "customJobs", body)
    assert (answer.status_code, answer.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert "metrics exceed quota limits" in answer.json()["error"]["message"]
    del body["jobSpec"]["scheduling"]  # type: ignore[attr-defined]
    name = server.call("POST", "customJobs", body).json()["name"]
    wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "JOB_STATE_QUEUED")
    wait_until(lambda: server.request("GET", f"/v1/{name}").json()["state"] == "JOB_STATE_FAILED")
    assert server.request("GET", f"/v1/{name}").json()["error"] == {"code": 8, "message": INSUFFICIENT}
