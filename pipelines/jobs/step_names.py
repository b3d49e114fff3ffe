"""What the console calls a step, instead of the names that the compiler gave: `train`, not `custom-training-job`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_MADE_BY_COMPILER = re.compile(r"(?:exit-handler|condition|condition-branches)-\d+")
"""Graphs that the user wrote as a `with` block: what is inside is told without them."""


def step_names(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return, for the path of each task of a compiled pipeline, how to call it.

    Args:
        spec: The pipeline spec; a path is the names of the tasks around a task and its own, with slashes.
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
