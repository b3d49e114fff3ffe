"""The steps that made a pipeline job fail, from the details of its tasks."""

import json
from collections.abc import Mapping
from typing import Any


def failed_tasks(tasks: Mapping[int, Any]) -> list[Any]:
    """Return the failed steps among the task details of a pipeline job, which are given by their ids."""
    failed = [task for task in tasks.values() if task.state.name == "FAILED"]
    # A graph fails because one of its steps did, and only the step has the cause.
    parents = {task.parent_task_id for task in failed}
    return [task for task in failed if task.task_id not in parents]


def task_path(task: Any, tasks: Mapping[int, Any]) -> str:
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
