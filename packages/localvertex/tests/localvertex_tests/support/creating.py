"""A step that creates custom jobs by REST, as any program would, and what it is given."""

from pathlib import Path
from typing import Any

from kfp import dsl

from vertex_testing.runs import STEP

CLIENT = """\
import json, os, time, urllib.error, urllib.request

def call(method, path, body=None, region="us-central1", variable="LOCALVERTEX_ENDPOINT", token=None):
    found = json.load(open(os.environ[variable]))
    request = urllib.request.Request(
        f"{found['address']}/v1/projects/p/locations/{region}/customJobs{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token or found['token']}", "Content-Type": "application/json"},
        method=method,
    )
    try:
        return 200, json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]

def body(candidate=None, attempt=0, **spec):
    candidate = candidates[0] if candidate is None else candidate
    machine = {name: candidate[name] for name in ("machine_type", "accelerator_type", "accelerator_count")}
    machine = {name: each for name, each in machine.items() if each}
    count = int(candidate["replica_count"])
    pools = [{**(each or pools_given[0]), "machine_spec": machine} for each in [pools_given[0], None][:min(count, 2)]]
    pools = [each | {"replica_count": number} for each, number in zip(pools, (1, count - 1))]
    labels = {"run_id": "r", "task": task, "candidate": str(candidates.index(candidate)), "attempt": str(attempt)}
    scheduling = {"strategy": candidate["scheduling_strategy"], "timeout": "600s"}
    if candidate["scheduling_strategy"] == "FLEX_START":
        scheduling["maxWaitDuration"] = f"{candidate['max_wait_seconds']}s"
    spec = {"workerPoolSpecs": pools, "scheduling": scheduling, **spec}
    return {"displayName": "j", "labels": labels, "jobSpec": spec}

def create(candidate=None, attempt=0, **spec):
    region = (candidates[0] if candidate is None else candidate)["region"]
    return call("POST", "", body(candidate, attempt, **spec), region)

def number(job):
    return job["name"].rpartition("/")[2]

def get(job):
    region = job["name"].split("/")[3]
    return call("GET", f"/{number(job)}", region=region)[1]

def wait(job, *states):
    end = time.monotonic() + 120
    while (found := get(job))["state"].removeprefix("JOB_STATE_") not in states:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found

def note(name, value):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
"""
"""What the code of a test's step finds: calls of the API, and `note`, which writes a file for the test."""


@dsl.component(**STEP)
def start_jobs(worker_pool_specs: list, candidates: list, client: str, code: str, folder: str, task: str) -> None:
    """Run code that creates jobs."""
    names = {"pools_given": worker_pool_specs, "candidates": candidates, "folder": folder, "task": task}
    exec(compile(client + code, "code", "exec"), names)


@dsl.component(**STEP)
def start_none(worker_pool_specs: list, client: str, code: str, folder: str, task: str) -> None:
    """Run code that may create no jobs, because the step has no candidates."""
    names = {"pools_given": worker_pool_specs, "folder": folder, "task": task}
    names["candidates"] = [{"region": "us-central1", "scheduling_strategy": "STANDARD"}]
    exec(compile(client + code, "code", "exec"), names)


@dsl.pipeline(name="starts")
def starts(worker_pool_specs: list, candidates: list, code: str, folder: str, client: str = CLIENT) -> None:
    start_jobs(
        worker_pool_specs=worker_pool_specs,
        candidates=candidates,
        client=client,
        code=code,
        folder=folder,
        task=dsl.PIPELINE_TASK_ID_PLACEHOLDER,
    ).set_caching_options(False)


@dsl.pipeline(name="starts-again")
def starts_again(worker_pool_specs: list, candidates: list, code: str, folder: str, client: str = CLIENT) -> None:
    start_jobs(
        worker_pool_specs=worker_pool_specs,
        candidates=candidates,
        client=client,
        code=code,
        folder=folder,
        task=dsl.PIPELINE_TASK_ID_PLACEHOLDER,
    ).set_retry(2, backoff_duration="600s")


def candidate(**fields: Any) -> dict[str, Any]:
    """Return a candidate without a GPU."""
    return {
        "region": "us-central1",
        "scheduling_strategy": "STANDARD",
        "machine_type": "n1-standard-4",
        "accelerator_type": "",
        "accelerator_count": 0,
        "replica_count": 1,
        "max_wait_seconds": 0,
    } | fields


def pools(code: str) -> list[dict[str, Any]]:
    """Return the pools of a job whose replicas run code."""
    container = {
        "image_uri": "gcr.io/x/y:1",
        "command": ["python", "-c", code],
        "args": ["a"],
        "env": [{"name": "SIZE", "value": "3"}],
    }
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


def parameters(
    folder: Path, code: str, *candidates: dict[str, Any], trains: str = "print('trained')"
) -> dict[str, Any]:
    """Return the parameters of a run whose step runs code, and whose jobs run `trains`."""
    return {
        "worker_pool_specs": pools(trains),
        "candidates": [*(candidates or (candidate(),))],
        "code": code,
        "folder": str(folder),
    }
