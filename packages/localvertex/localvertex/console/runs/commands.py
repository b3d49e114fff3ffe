"""The command of a step with its placeholders resolved, from the compiled file and the step's executor input."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex.console.runs.folders import step_folder
from localvertex.runner.options import earlier_job_fields
from localvertex.store import run_folder
from localvertex.store.executor_files import INPUT
from localvertex.values.arguments import expand_arguments, present_inputs
from localvertex.values.buckets import Buckets
from localvertex.values.placeholders import Scope, Unresolvable, resolve_text
from localvertex_base.compiled import load
from localvertex_base.compiled.spec import Container, Pipeline
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import read_bytes


def of_step(run_dir: Path, content: dict[str, Any], task: str) -> dict[str, Any]:
    """Return image and command of a step; empty for one that has none, or has not been started.

    Values that cannot be resolved are shown as they are in the compiled file.
    """
    none: dict[str, Any] = {"image": "", "command": []}
    try:
        container = _container(load.load(run_folder.pipeline_copy(run_dir)).pipeline, task)
        # The step can write it, too: a pipe in its place is not waited for.
        executor_input = json.loads(read_bytes(step_folder(run_dir, task) / INPUT))
        present = present_inputs(executor_input)
    except (UserError, OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return none
    if container is None:
        return none
    entry: dict[str, Any] = next((each for each in content["tasks"] if each["path"] == task), {})
    scope = Scope(
        job=earlier_job_fields(content),
        task={"pipeline_task_name": str(entry.get("display_name", ""))},
        executor_input=executor_input,
        buckets=Buckets.of_record(content),
    )
    words = [*container.command, *container.args]
    with suppress(Unresolvable):
        words = expand_arguments(words, present)
    return {"image": container.image, "command": [_resolve(each, scope) for each in words]}


def _resolve(word: str, scope: Scope) -> str:
    try:
        return resolve_text(word, scope)
    except (Unresolvable, LookupError, TypeError):
        return word


def _container(pipeline: Pipeline, task: str) -> Container | None:
    """Return the container of the step at a path, whose iterations of loops are numbers."""
    component = pipeline.root
    for name in task.split("/"):
        tasks = component.dag.tasks if component.dag else {}
        if name in tasks:
            component = pipeline.components[tasks[name].component]
        elif not name.isdecimal():
            return None
    executor = pipeline.executors.get(component.executor)
    return executor if isinstance(executor, Container) else None
