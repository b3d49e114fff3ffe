"""A step whose outputs the user gives: nothing runs, and its files are copied, so that no later step changes them."""

from pathlib import Path
from uuid import uuid4

from localvertex.errors import TaskFailed
from localvertex.executors.context import Context
from localvertex.store import copies, executor_files
from localvertex.store.task import Task, Values


def produce(task: Task, context: Context) -> Values:
    """Return the given outputs of a task, with artifacts in its folder.

    Raises:
        TaskFailed: A file cannot be copied.
        OSError: The folder cannot be written.
    """
    given, parent = task.component.given, executor_files.artifact_parent(context.project, context.region)
    if given is None:
        raise TypeError(f"{task.label} has no given outputs")
    planned = executor_files.prepare(
        task.component, task.inputs, task.folder, parent, outputs_at=str(task.folder), buckets=context.buckets
    )["outputs"]["artifacts"]
    values = Values(parameters=dict(given.parameters))
    for name, artifacts in given.artifacts.items():
        first, values.artifacts[name] = planned[name]["artifacts"][0], []
        for number, each in enumerate(artifacts):
            target = Path(first["uri"], str(number)) if task.component.output_artifacts[name].is_list else first["uri"]
            if each.path:
                Path(target).parent.mkdir(exist_ok=True)
                try:
                    copies.copy(Path(each.path), Path(target))
                except (ValueError, OSError) as error:
                    raise TaskFailed(f"cannot copy the given {name}: {error}", is_retryable=False) from None
            values.artifacts[name].append(
                first
                | {
                    "name": executor_files.artifact_name(parent, uuid4().int >> 66),
                    "uri": each.uri or str(target),
                    "metadata": first["metadata"] | each.metadata,
                }
            )
    return values
