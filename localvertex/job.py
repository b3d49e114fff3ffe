"""What an executor is given: one attempt at one step."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from localvertex.arguments import expand_arguments, present_inputs
from localvertex.context import Context
from localvertex.custom_jobs import Status
from localvertex.errors import TaskFailed
from localvertex.placeholders import Scope, Unresolvable, resolve_text
from localvertex.spec import Component, Container, Importer


@dataclass(frozen=True, kw_only=True)
class Job:
    """One attempt at one step."""

    label: str
    component: Component
    executor: Container | Importer
    executor_input: dict[str, Any]
    scope: Scope
    folder: Path
    log: Path
    context: Context
    report_exit: Callable[[int], None]
    """Is told the exit code of the step's process."""
    report_custom_job: Callable[[Status], None]
    """Is told how the step's custom job is doing."""

    @property
    def container(self) -> Container:
        """The container spec of a step that has one."""
        if not isinstance(self.executor, Container):
            raise TypeError(f"{self.label} has no container")
        return self.executor

    def arguments(self) -> list[str]:
        """The container's args, Concat and IfPresent flattened, placeholders still in."""
        try:
            return expand_arguments(self.container.args, present_inputs(self.executor_input))
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def resolve(self, template: str) -> str:
        """A template with its placeholders replaced."""
        try:
            return resolve_text(template, self.scope)
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def environment(self, bin_folder: Path) -> dict[str, str]:
        """The user's environment, this interpreter's programs first in PATH, the container's variables over it."""
        env = os.environ | {"PYTHONUNBUFFERED": "1"}
        env |= {name: self.resolve(value) for name, value in self.container.env.items()}
        return env | {"PATH": f"{bin_folder}{os.pathsep}{env.get('PATH', os.defpath)}"}


def launcher_options(arguments: list[str]) -> dict[str, str]:
    """`--name value` pairs of a Google Cloud launcher, placeholders still in."""
    return {name.removeprefix("--"): value for name, value in pairwise(arguments) if name.startswith("--")}


def missing_options(executor: Container | Importer, *names: str) -> list[str]:
    """For each option that a launcher's arguments lack, a reason to refuse it."""
    options = launcher_options(list(executor.args)) if isinstance(executor, Container) else {}
    return [f"{executor.place}.args: the launcher has no --{name}" for name in names if name not in options]
