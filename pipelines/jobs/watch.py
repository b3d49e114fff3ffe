"""A pipeline job from its submission to its end: the steps as they go, and why it failed."""

import json
import time
from collections.abc import Iterator
from typing import Any

from pipelines.jobs.step_names import step_names
from pipelines.vertex import CallFailed, Place, calls, client

POLL_SECONDS = 5.0
LOCAL_POLL_SECONDS = 0.5
PATIENCE_SECONDS = 600.0
"""So long a service that does not answer is asked again: the pipeline runs on without us."""

SUCCEEDED = "PIPELINE_STATE_SUCCEEDED"
ENDED = {SUCCEEDED, "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLED", "PIPELINE_STATE_PAUSED"}


def watch(place: Place, name: str) -> bool:
    """Print the steps' states until the job has ended, then how and why; return whether it succeeded.

    Args:
        place: Where it runs.
        name: Resource name of the pipeline job.

    Raises:
        CallFailed: The service could not be asked for ten minutes.
    """
    from google.protobuf import json_format

    jobs = client(place, "PipelineServiceClient")
    seen: dict[str, str] = {}
    names: dict[str, str] = {}
    while True:
        with calls(place):
            job = jobs.get_pipeline_job(name=name, retry=patient(), timeout=60)
        tasks = {task.task_id: task for task in job.job_detail.task_details}
        names = names or step_names(json_format.MessageToDict(type(job).pb(job).pipeline_spec))
        for path, text in _changes(tasks, seen):
            print(f"{names.get(path, path)}: {text}", flush=True)
        if job.state.name in ENDED:
            break
        time.sleep(LOCAL_POLL_SECONDS if place.is_local else POLL_SECONDS)
    for line in failures(place, tasks, names):
        print(line)
    cause = f": {' '.join(job.error.message.split())}" if job.error.message else ""
    print(f"{name.rpartition('/')[2]}: {job.state.name.removeprefix('PIPELINE_STATE_')}{cause}", flush=True)
    return bool(job.state.name == SUCCEEDED)


def patient() -> Any:
    """Return a rule that repeats a harmless call while the service or the network has a bad moment."""
    import requests
    from google.api_core import exceptions, retry

    passing = (
        exceptions.TooManyRequests,
        exceptions.ServerError,
        requests.exceptions.ConnectionError,
        requests.exceptions.Timeout,
    )
    return retry.Retry(
        predicate=retry.if_exception_type(*passing), initial=1, maximum=30, multiplier=2, timeout=PATIENCE_SECONDS
    )


def _changes(tasks: dict[int, Any], seen: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the steps whose state is another than last time; graphs and what is only waiting are left out."""
    graphs = {task.parent_task_id for task in tasks.values()}
    for task in sorted(tasks.values(), key=lambda task: task.task_id):
        state, path = task.state.name, task_path(task, tasks)
        if task.task_id in graphs or not path or state in ("PENDING", "STATE_UNSPECIFIED") or seen.get(path) == state:
            continue
        seen[path] = state
        took = (task.end_time - task.start_time).total_seconds() if task.end_time and task.start_time else None
        yield path, state if took is None else f"{state} after {took:.1f} s"


def task_path(task: Any, tasks: dict[int, Any]) -> str:
    """Return the names of the tasks around a task and its own, with slashes; empty for the root."""
    names: list[str] = []
    while task.parent_task_id in tasks and len(names) < 50:
        names.insert(0, task.task_name)
        task = tasks[task.parent_task_id]
    return "/".join(names)


def failures(place: Place, tasks: dict[int, Any], names: dict[str, str]) -> Iterator[str]:
    """Yield the error text of each failed step, the failing replica's own, and how to read its log."""
    parents = {task.parent_task_id for task in tasks.values() if task.state.name == "FAILED"}
    for task in tasks.values():
        # A graph fails because a step in it did: only the step has something to say.
        if task.state.name != "FAILED" or task.task_id in parents:
            continue
        path = task_path(task, tasks) or task.task_name
        yield f"{names.get(path, path)} failed: {task.error.message or 'the service gives no reason'}"
        for job_name in custom_jobs_of(task):
            if text := _custom_job_error(place, job_name):
                yield f"  {job_name}: {text}"
            if not place.is_local:
                yield f"  its log: {log_command(place, job_name)}"


def custom_jobs_of(task: Any) -> list[str]:
    """Return the names of the custom jobs behind a task: its container's, and the one a Google component started."""
    container, custom = task.executor_detail.container_detail, task.executor_detail.custom_job_detail
    names = [*container.failed_main_jobs, container.main_job, *custom.failed_jobs, custom.job]
    held = dict(task.execution.metadata or {}).get("output:gcp_resources")
    try:
        resources = json.loads(held)["resources"] if isinstance(held, str) else []
        names += [str(each["resourceUri"]).partition("/v1/")[2] for each in resources]
    except (ValueError, KeyError, TypeError):
        pass  # not what Google's components write: nothing to be found there
    return [name for name in dict.fromkeys(names) if "/customJobs/" in name]


def _custom_job_error(place: Place, name: str) -> str:
    try:
        with calls(place):
            job = client(place, "JobServiceClient").get_custom_job(name=name, timeout=60)
    except CallFailed as failure:
        return "" if place.is_local else str(failure)
    return " ".join(job.error.message.split())


def log_command(place: Place, job_name: str) -> str:
    """Return the gcloud command that prints the log of a custom job's replicas."""
    number = job_name.rpartition("/")[2]
    return f"gcloud ai custom-jobs stream-logs {number} --project={place.project} --region={place.region}"
