"""What a step that creates custom jobs may do, and what it may not: everything here is a call of a real step."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.support.creating import CLIENT, candidate, parameters, start_jobs, start_none, starts

from localvertex import jobs
from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from localvertex.processes.masks.mask import Mask
from localvertex.store import record
from vertex_testing.runs import Execute, FindTask

pytestmark = pytest.mark.slow

GPU = {"machine_type": "g2-standard-12", "accelerator_type": "NVIDIA_L4", "accelerator_count": "1.0"}

WAITS = "import time; time.sleep(600)"


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_a_job_of_a_candidate_runs_as_the_job_of_its_step(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    code = """
code, job = create(baseOutputDirectory={"outputUriPrefix": folder + "/out"})
assert code == 200, job
note("created", job)
running = wait(job, "RUNNING", *ENDED)
note("ended", wait(job, *ENDED))
note("listed", [
    call("GET", f'?filter=labels.task%3D%22{each}%22')[1].get("customJobs", []) for each in (task, "other")
])
assert call("DELETE", f"/{number(job)}")[0] == 200
assert call("GET", f"/{number(job)}")[0] == 404
"""
    trains = "import os, time; time.sleep(1); print('size', os.environ['SIZE'], os.environ['CLOUD_ML_PROJECT_ID'])"
    found = execute(starts, parameters(tmp_path, code, trains=trains))
    assert found["state"] == "SUCCEEDED"
    entry = task(found, "start-jobs")
    created, ended, listed = (read(tmp_path, name) for name in ("created", "ended", "listed"))
    assert (created["state"], "startTime" in created) == ("JOB_STATE_PENDING", False)
    assert created["labels"] == {"run_id": "r", "task": created["labels"]["task"], "candidate": "0", "attempt": "0"}
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert created["createTime"] <= ended["startTime"] <= ended["endTime"]
    assert [[each["name"] for each in group] for group in listed] == [[created["name"]], []]
    # As the job of Google's operation: status, log and goodput are the step's.
    assert entry["custom_job"]["state"] == "JOB_STATE_SUCCEEDED"
    assert [each["name"] for each in entry["custom_job"]["replicas"]] == ["workerpool0-0"]
    assert entry["custom_job"]["goodput"]["num_failures"] == 0
    folder = work_dir / found["run_id"] / "start-jobs"
    assert (folder / "workerpool0-0.log").read_text().startswith("size 3 local-project")
    assert read(folder, "custom_job.json")["display_name"] == "j"


def test_a_job_that_no_candidate_describes_is_refused(execute: Execute, tmp_path: Path) -> None:
    code = """
from copy import deepcopy
refused = {}

def refuse(name, change=lambda job: None, region="us-central1", job=None):
    job = deepcopy(job or body())
    change(job["jobSpec"])
    refused[name] = call("POST", "", job, region)

def container(spec):
    return spec["workerPoolSpecs"][0]["container_spec"]

def machine(**fields):
    return lambda spec: spec["workerPoolSpecs"][0]["machine_spec"].update(fields)

def second(count, **fields):
    return lambda spec: spec["workerPoolSpecs"].append({**spec["workerPoolSpecs"][0], "replica_count": count, **fields})

refuse("image", lambda spec: container(spec).update(image_uri="gcr.io/x/other:1"))
refuse("command", lambda spec: container(spec)["command"].append("x"))
refuse("args", lambda spec: container(spec).update(args=[]))
refuse("env", lambda spec: container(spec)["env"].append({"name": "OTHER", "value": "x"}))
refuse("value", lambda spec: container(spec)["env"][0].update(value="4"))
refuse("type", machine(machine_type="n1-standard-8"))
refuse("gpu", machine(machine_type="g2-standard-12", accelerator_type="NVIDIA_L4", accelerator_count=1))
refuse("reservation", machine(reservation_affinity={"reservation_affinity_type": "ANY_RESERVATION"}))
refuse("region", region="europe-west4")
refuse("spot", lambda spec: spec["scheduling"].update(strategy="SPOT"))
refuse("replicas", second(1))
refuse("workers", second(2, container_spec={**pools_given[0]["container_spec"], "args": ["b"]}))
refuse("evaluator", lambda spec: spec["workerPoolSpecs"].extend([{}, {}, spec["workerPoolSpecs"][0]]))
refuse("package", lambda spec: spec["workerPoolSpecs"][0].update(container_spec=None, python_package_spec={
    "executor_image_uri": "i", "package_uris": ["gs://b/p.tar.gz"], "python_module": "m"}))
refuse("server", lambda spec: spec.update(baseOutputDirectory={"outputUriPrefix": folder + "/runs/api/x"}))
refuse("none", lambda spec: spec.update(workerPoolSpecs=[]))
refuse("two machines", lambda spec: [
    second(1)(spec), spec["workerPoolSpecs"][1].update(machine_spec={"machine_type": "n1-standard-8"})
])
refuse("pipeline job", job={"jobSpec": {}})
for path in ("trainingPipelines", "hyperparameterTuningJobs", "batchPredictionJobs", "pipelineJobs", "schedules"):
    found = json.load(open(os.environ["LOCALVERTEX_ENDPOINT"]))
    request = urllib.request.Request(f"{found['address']}/v1/projects/p/locations/us-central1/{path}", data=b"{}",
        headers={"Authorization": f"Bearer {found['token']}", "Content-Type": "application/json"})
    try:
        refused[path] = urllib.request.urlopen(request).status, {}
    except urllib.error.HTTPError as error:
        refused[path] = error.code, json.load(error)["error"]
note("refused", refused)
note("listed", call("GET", "")[1])
"""
    found = execute(starts, parameters(tmp_path, code, candidate(), candidate(**GPU, scheduling_strategy="SPOT")))
    assert found["state"] == "SUCCEEDED", found
    refused = read(tmp_path, "refused")
    # Only the mask decides what is hidden.
    wrong = ("none", "package", "pipeline job", "two machines", *(() if Mask().is_there else ("server",)))
    assert {name: code for name, (code, _) in refused.items() if code != 403 and name not in wrong} == {}
    # What the service would refuse itself is refused as there.
    assert {refused[name][0] for name in wrong[:4]} <= {400, 403}
    for name, part in {
        "image": "container_spec is not that of its input",
        "env": "container_spec is not that of its input",
        "type": "is not one of its candidates",
        "region": "is not one of its candidates",
        "spot": "us-central1 SPOT n1-standard-4 1 is not one of its candidates",
        "evaluator": "worker_pool_specs[3]",
        "reservation": "machine_spec is not that of its input",
    }.items():
        assert part in refused[name][1]["message"], refused[name]
        assert refused[name][1]["message"].startswith("JobService.CreateCustomJob is not available to this step")
    assert read(tmp_path, "listed") == {"customJobs": []}


def test_candidates_of_several_machines_are_accepted(execute: Execute, tmp_path: Path) -> None:
    code = """
note("states", [[code, wait(job, *ENDED)["state"], number(job)] for code, job in map(create, candidates)])
"""
    spot = candidate(**GPU, scheduling_strategy="SPOT", region="europe-west4")
    found = execute(starts, parameters(tmp_path, code, candidate(replica_count="3"), spot))
    assert found["state"] == "SUCCEEDED", found
    states = read(tmp_path, "states")
    assert [each[:2] for each in states] == [[200, "JOB_STATE_SUCCEEDED"]] * 2


@dsl.pipeline(name="strangers")
def strangers(
    worker_pool_specs: list, candidates: list, code: str, other: str, folder: str, client: str = CLIENT
) -> None:
    first = start_jobs(
        worker_pool_specs=worker_pool_specs,
        candidates=candidates,
        client=client,
        code=code,
        folder=folder,
        task=dsl.PIPELINE_TASK_ID_PLACEHOLDER,
    )
    for step in (start_jobs, start_none):
        more = {"candidates": candidates} if step is start_jobs else {}
        step(worker_pool_specs=worker_pool_specs, client=client, code=other, folder=folder, task="other", **more)
    del first


def test_a_step_and_a_replica_cannot_touch_the_jobs_of_another_step(execute: Execute, tmp_path: Path) -> None:
    first = """
code, job = create()
assert code == 200, job
wait(job, "RUNNING")
note("job", job)
end = time.monotonic() + 120
while not all(os.path.exists(os.path.join(folder, each)) for each in ("granted", "none", "replica")):
    assert time.monotonic() < end
    time.sleep(0.1)
assert get(job)["state"] == "JOB_STATE_RUNNING"
assert call("POST", f"/{number(job)}:cancel", {})[0] == 200
assert wait(job, *ENDED)["state"] == "JOB_STATE_CANCELLED"
"""
    other = """
end = time.monotonic() + 120
while not os.path.exists(os.path.join(folder, "job")):
    assert time.monotonic() < end
    time.sleep(0.1)
job = json.load(open(os.path.join(folder, "job")))
read = get(job)["name"] == job["name"]
note("granted" if len(candidates[0]) > 2 else "none", [
    read, call("POST", f"/{number(job)}:cancel", {}), call("DELETE", f"/{number(job)}"), call("POST", "", {**job}),
])
"""
    replica = f"""
folder, task, candidates, pools_given = {str(tmp_path)!r}, "", [], []
{CLIENT}
end = time.monotonic() + 120
while not os.path.exists(os.path.join(folder, "job")):
    time.sleep(0.1)
job = json.load(open(os.path.join(folder, "job")))
note("replica", [
    get(job)["name"] == job["name"],
    call("POST", f"/{{number(job)}}:cancel", {{}}), call("DELETE", f"/{{number(job)}}"), call("POST", "", {{**job}}),
])
time.sleep(600)
"""
    values = parameters(tmp_path, first, trains=replica) | {"other": other}
    found = execute(strangers, values, max_parallel=3)
    assert found["state"] == "SUCCEEDED", found
    for name in ("granted", "none", "replica"):
        has_read, cancelled, deleted, created = read(tmp_path, name)
        assert has_read, name
        assert (cancelled[0], deleted[0]) == (403, 403), name
        # The other step has the same candidates.
        assert created[0] == (200 if name == "granted" else 403), name


@dsl.container_component
def start_in_a_sandbox(worker_pool_specs: list, candidates: list, client: str, code: str, folder: str):  # noqa: ANN201
    program = (
        "import json, sys; pools_given, candidates = map(json.loads, sys.argv[1:3]); folder, task = sys.argv[5], 't'; "
        "exec(compile(sys.argv[3] + sys.argv[4], 'code', 'exec'))"
    )
    inputs = [worker_pool_specs, candidates, client, code, folder]
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-c", program], args=inputs)


@dsl.pipeline(name="sandboxed")
def sandboxed(worker_pool_specs: list, candidates: list, code: str, folder: str, client: str = CLIENT) -> None:
    start_in_a_sandbox(
        worker_pool_specs=worker_pool_specs, candidates=candidates, client=client, code=code, folder=folder
    )


@pytest.mark.skipif(bool(Choice().how.problem), reason="container commands need a sandbox")
def test_a_command_in_the_sandbox_creates_its_jobs_and_changes_nothing_else(
    execute: Execute, tmp_path: Path, work_dir: Path
) -> None:
    code = """
_, job = create()
print("JOB", wait(job, *ENDED)["state"])
found = json.load(open(os.environ["LOCALVERTEX_ENDPOINT"]))
request = urllib.request.Request(f"{found['address']}/v1/projects/p/locations/us-central1/models:upload", data=b"{}",
    headers={"Authorization": f"Bearer {found['token']}", "Content-Type": "application/json"})
try:
    urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    print("UPLOAD", error.code)
"""
    found = execute(
        sandboxed,
        parameters(tmp_path, code),
        containers=ContainerOptions(allow_network=True, allow_host_commands=False),
    )
    assert found["state"] == "SUCCEEDED", found
    log = (work_dir / found["run_id"] / "start-in-a-sandbox" / "log.txt").read_text()
    assert "JOB JOB_STATE_SUCCEEDED" in log
    assert "UPLOAD 403" in log


def test_the_token_ends_with_its_step_and_is_in_no_file(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    code = """
found = json.load(open(os.environ["LOCALVERTEX_ENDPOINT"]))
print("token", found["token"])
note("token", found)
assert call("GET", "")[0] == 200
"""
    found = execute(starts, parameters(tmp_path, code))
    assert found["state"] == "SUCCEEDED", found
    token = read(tmp_path, "token")["token"]
    texts = [each.read_text(errors="replace") for each in work_dir.rglob("*") if each.is_file()]
    assert not [each for each in texts if token in each]


def test_a_job_of_a_run_is_in_the_records_of_the_work_folder(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    found = execute(starts, parameters(tmp_path, "code, job = create(); note('job', wait(job, *ENDED))"))
    job = read(tmp_path, "job")
    path = work_dir / "api" / "customJobs" / f"{job['name'].rpartition('/')[2]}.json"
    assert json.loads(path.read_text())["state"] == str(jobs.JobState.SUCCEEDED) == job["state"]
    assert not record.is_running(path.with_suffix(""))
    assert found["state"] == "SUCCEEDED"
