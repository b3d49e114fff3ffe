"""One step of a compiled pipeline and the values that reach it."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_LAUNCHER = re.compile(r"google_cloud_pipeline_components\.container\.[\w.]+launcher")


@dataclass(frozen=True, kw_only=True)
class Value:
    """What reaches an input of a step."""

    value: Any
    """A plain value or RuntimeValue."""
    where: str
    """Path in the file of the place that holds it."""
    default_of: tuple[str, ...] = ()
    """The pipeline parameter whose default it is."""
    is_artifact: bool = False
    """It is an artifact put where only a parameter can stand."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One task that runs a container."""

    name: str
    where: str
    """Path of the task, e.g. "root.dag.tasks.train"."""
    container: dict[str, Any]
    container_where: str
    inputs: dict[str, Value]
    """What the task is given, and the component's own defaults for the rest."""
    given: frozenset[str]
    """Names of the inputs that the task itself sets."""
    cached: bool

    @property
    def is_google_cloud(self) -> bool:
        """Whether it is a Google Cloud component, whose container only starts something elsewhere."""
        command = self.container.get("command")
        return isinstance(command, list) and any(isinstance(part, str) and _LAUNCHER.search(part) for part in command)

    def argument(self, name: str) -> str:
        """Return the word after a flag in the container's args, e.g. of "--type"; empty when there is none."""
        args = self.container.get("args")
        words = args if isinstance(args, list) else []
        found = [after for flag, after in pairwise(words) if flag == name]
        return found[0] if found and isinstance(found[0], str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, an empty one otherwise."""
    return value if isinstance(value, dict) else {}
