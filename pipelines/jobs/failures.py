"""The steps that made a pipeline job fail, from the details of its tasks."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class FailedTask:
    """A step that failed, not one of the graphs that failed because of it."""

    path: str
    """Names of the enclosing tasks and its own, joined by slashes."""
    error: str
    custom_jobs: tuple[str, ...]
    """Resource names of the custom jobs that it ran as or started."""


def failed_tasks(tasks: Mapping[int, Any]) -> Iterator[FailedTask]:
    """Yield the failed steps among the task details of a pipeline job, which are given by their ids."""
    parents = {task.parent_task_id for task in tasks.values() if task.state.name == "FAILED"}
    for task in tasks.values():
        # A graph fails because one of its steps did, and only the step has the cause.
        if task.state.name == "FAILED" and task.task_id not in parents:
            path = task_path(task, tasks) or task.task_name
            error = task.error.message or "the service gave no reason"
            yield FailedTask(path=path, error=error, custom_jobs=tuple(_custom_jobs(task)))


def task_path(task: Any, tasks: Mapping[int, Any]) -> str:
    """Return the names of the enclosing tasks and the task's own, joined by slashes; empty for the root."""
    names: list[str] = []
    while task.parent_task_id in tasks and len(names) < 50:
        names.insert(0, task.task_name)
        task = tasks[task.parent_task_id]
    return "/".join(names)


def _custom_jobs(task: Any) -> list[str]:
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
