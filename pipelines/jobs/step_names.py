"""The display names of steps, as in the console: `train` instead of the compiler's `custom-training-job`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_MADE_BY_COMPILER = re.compile(r"(?:exit-handler|condition|condition-branches)-\d+")
"""Graphs of `with` blocks, which are left out of the names of the steps inside."""


def step_names(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> display name for all tasks of a compiled pipeline.

    A path is the names of the enclosing tasks and the task's own, joined by slashes.

    Args:
        spec: The pipeline spec.
    """
    components = spec.get("components", {})
    return dict(_walk(spec.get("root", {}), components, path=(), shown=()))


def _walk(
    component: Mapping[str, Any], components: Mapping[str, Any], *, path: tuple[str, ...], shown: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for name, task in component.get("dag", {}).get("tasks", {}).items():
        display = task.get("taskInfo", {}).get("name") or name
        yield "/".join([*path, name]), "/".join([*shown, display])
        inside = shown if _MADE_BY_COMPILER.fullmatch(name) else (*shown, display)
        inner = components.get(task.get("componentRef", {}).get("name", ""), {})
        yield from _walk(inner, components, path=(*path, name), shown=inside)
