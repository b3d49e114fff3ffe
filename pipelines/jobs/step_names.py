"""The display names of steps, as in the console: `train` instead of the compiler's `custom-training-job`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Component, Pipeline

_MADE_BY_COMPILER = re.compile(r"(?:exit-handler|condition|condition-branches)-\d+")
"""Graphs of `with` blocks, which are left out of the names of the steps inside."""


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
