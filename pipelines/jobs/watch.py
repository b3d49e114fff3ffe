"""Watching a pipeline job: the state of its steps, and why it failed."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Component, Pipeline
from pipelines.calls import CallFailed, calls
from pipelines.vertex import Location, as_json, client
from trainer.google_errors import is_temporary

_POLL_SECONDS = 5.0
_LOCAL_POLL_SECONDS = 0.5
_RETRY_SECONDS = 600.0
"""How long calls are retried while the service does not answer; the pipeline runs meanwhile."""

_SUCCEEDED = "PIPELINE_STATE_SUCCEEDED"
ENDED = {_SUCCEEDED, "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLED", "PIPELINE_STATE_PAUSED"}


_MADE_BY_COMPILER = re.compile(r"(?:exit-handler|condition|condition-branches)-\d+")
"""Graphs of `with` blocks, which are left out of the names of the steps inside."""


def watch(location: Location, name: str) -> bool:
    """Print the state of the steps until the job has ended, then how it ended and why.

    Args:
        location: Location of the job.
        name: Resource name of the pipeline job.

    Returns:
        Whether the job succeeded.

    Raises:
        CallFailed: The service did not answer for ten minutes.
    """
    from google.api_core.retry import Retry

    again = Retry(predicate=is_temporary, initial=1, maximum=30, multiplier=2, timeout=_RETRY_SECONDS)
    jobs = client(location, "PipelineServiceClient")
    seen: dict[str, str] = {}
    names: dict[str, str] = {}
    while True:
        with calls(location):
            job = jobs.get_pipeline_job(name=name, retry=again, timeout=60)
        tasks = {task.task_id: task for task in job.job_detail.task_details}
        names = names or step_names(as_json(job).get("pipelineSpec", {}))
        for path, text in _changes(tasks, seen):
            print(f"{names.get(path, path)}: {text}", flush=True)
        if job.state.name in ENDED:
            break
        time.sleep(_LOCAL_POLL_SECONDS if location.is_local else _POLL_SECONDS)
    for line in _failures(location, tasks, names):
        print(line)
    cause = f": {' '.join(job.error.message.split())}" if job.error.message else ""
    print(f"{name.rpartition('/')[2]}: {job.state.name.removeprefix('PIPELINE_STATE_')}{cause}", flush=True)
    return bool(job.state.name == _SUCCEEDED)


def _changes(tasks: dict[int, Any], seen: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and state of each step whose state has changed; graphs and waiting steps are left out."""
    graphs = {task.parent_task_id for task in tasks.values()}
    for task in sorted(tasks.values(), key=lambda task: task.task_id):
        state, path = task.state.name, _task_path(task, tasks)
        if task.task_id in graphs or not path or state in ("PENDING", "STATE_UNSPECIFIED") or seen.get(path) == state:
            continue
        seen[path] = state
        seconds = (task.end_time - task.start_time).total_seconds() if task.end_time and task.start_time else None
        yield path, state if seconds is None else f"{state} after {seconds:.1f} s"


def _failures(location: Location, tasks: dict[int, Any], names: dict[str, str]) -> Iterator[str]:
    """Yield the error of each failed step, the error of its custom job, and the command that prints the log."""
    for task in _failed_tasks(tasks):
        path = _task_path(task, tasks) or task.task_name
        yield f"{names.get(path, path)} failed: {task.error.message or 'the service gave no reason'}"
        for job_name in custom_jobs(task):
            if text := _custom_job_error(location, job_name):
                yield f"  {job_name}: {text}"
            if not location.is_local:
                place = f"--project={location.project} --region={location.region}"
                yield f"  log: gcloud ai custom-jobs stream-logs {job_name.rpartition('/')[2]} {place}"


def _custom_job_error(location: Location, name: str) -> str:
    try:
        with calls(location):
            job = client(location, "JobServiceClient").get_custom_job(name=name, timeout=60)
    except CallFailed as error:
        return "" if location.is_local else str(error)
    return " ".join(job.error.message.split())


def _failed_tasks(tasks: Mapping[int, Any]) -> list[Any]:
    """Return the failed steps among the task details of a pipeline job, which are given by their ids."""
    failed = [task for task in tasks.values() if task.state.name == "FAILED"]
    # A graph fails because one of its steps did, and only the step has the cause.
    parents = {task.parent_task_id for task in failed}
    return [task for task in failed if task.task_id not in parents]


def _task_path(task: Any, tasks: Mapping[int, Any]) -> str:
    """Return the names of the enclosing tasks and the task's own, joined by slashes; empty for the root."""
    names: list[str] = []
    while task.parent_task_id in tasks and len(names) < 50:
        names.insert(0, task.task_name)
        task = tasks[task.parent_task_id]
    return "/".join(names)


def custom_jobs(task: Any) -> list[str]:
    """Return the names of the custom jobs of a task: its container's, and those that Google's components started."""
    container, custom = task.executor_detail.container_detail, task.executor_detail.custom_job_detail
    names = [*container.failed_main_jobs, container.main_job, *custom.failed_jobs, custom.job]
    metadata = dict(task.execution.metadata or {}).get("output:gcp_resources")
    try:
        resources = json.loads(metadata)["resources"] if isinstance(metadata, str) else []
        names += [str(each["resourceUri"]).partition("/v1/")[2] for each in resources]
    except (ValueError, KeyError, TypeError):
        pass  # another component wrote it, and started no custom job
    return [name for name in dict.fromkeys(names) if "/customJobs/" in name]


def step_names(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> display name for all tasks of a compiled pipeline.

    A path is the names of the enclosing tasks and the task's own, joined by slashes.

    Args:
        spec: The pipeline spec.
    """
    pipeline = read_pipeline(spec)
    return dict(_walk(pipeline.root, pipeline, path="", shown=""))


def _walk(component: Component, pipeline: Pipeline, *, path: str, shown: str) -> Iterator[tuple[str, str]]:
    for task in component.dag.tasks.values() if component.dag else ():
        name = f"{shown}{task.display_name}"
        yield f"{path}{task.name}", name
        if inner := pipeline.components.get(task.component):
            inside = shown if _MADE_BY_COMPILER.fullmatch(task.name) else f"{name}/"
            yield from _walk(inner, pipeline, path=f"{path}{task.name}/", shown=inside)
