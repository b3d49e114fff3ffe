"""What an executor is given: one attempt at one step."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from compiled.spec import Component, Container, Importer
from localvertex.custom_jobs import Status
from localvertex.errors import TaskFailed
from localvertex.executors.context import Context
from localvertex.processes.processes import Process
from localvertex.values.arguments import expand_arguments, present_inputs
from localvertex.values.placeholders import Scope, Unresolvable, resolve_text


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

    def command(self) -> list[str]:
        """The container's command, Concat and IfPresent flattened, placeholders still in."""
        return self.expanded(self.container.command)

    def arguments(self) -> list[str]:
        """The container's args, Concat and IfPresent flattened, placeholders still in."""
        return self.expanded(self.container.args)

    def expanded(self, words: tuple[str, ...]) -> list[str]:
        """Templates with the structures in them flattened."""
        try:
            return expand_arguments(words, present_inputs(self.executor_input))
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def resolve(self, template: str) -> str:
        """A template with its placeholders replaced."""
        try:
            return resolve_text(template, self.scope)
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def run(self, command: list[str], env: dict[str, str]) -> int:
        """Runs a command in the task's folder; its exit code.

        Raises:
            Cancelled: the run was stopped.
            TaskFailed: it cannot be started, or took longer than its timeout.
        """
        return self.wait(self.context.processes.start(command, cwd=self.folder, env=env, log=self.log))

    def wait(self, process: Process) -> int:
        """Waits for a process of this attempt; its exit code. See `run`."""
        seconds, is_late = self.container.timeout_seconds, threading.Event()

        def stop() -> None:
            is_late.set()
            process.stop()

        timer = threading.Timer(seconds or 0.0, stop)
        timer.daemon = True
        if seconds is not None:
            timer.start()
        code = self.context.processes.wait(process)
        timer.cancel()
        self.context.processes.check_stopped()
        if is_late.is_set():
            raise TaskFailed(f"took longer than its timeout of {seconds:g} s", exit_code=code)
        return code

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
