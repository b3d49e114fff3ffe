"""One attempt at one step, as an executor receives it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.compiled.payload import PLACEHOLDER
from localvertex._base.compiled.spec import Component, Container, Importer
from localvertex._base.json_object import JsonObject
from localvertex._base.step_endpoint import IMAGES, MARKER
from localvertex.containers import leftovers, memory
from localvertex.containers.call import Prepared
from localvertex.containers.mounts import artifact_paths
from localvertex.containers.stand_ins import StandIn
from localvertex.credentials.step_file import StepFile
from localvertex.errors import TaskFailed
from localvertex.executors.context import Context
from localvertex.jobs import JobStatus
from localvertex.machines import load_catalogue
from localvertex.machines.catalogue import nearest
from localvertex.processes import environments
from localvertex.values.arguments import expand_arguments, present_inputs
from localvertex.values.placeholders import Scope, Unresolvable, resolve_text

_PLAIN_PATH = re.compile(r"[\w/.,:@%+=-]*", re.ASCII)
"""Paths that mean themselves in every shell."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at one step."""

    label: str
    component: Component
    executor: Container | Importer
    executor_input: JsonObject
    scope: Scope
    folder: Path
    temporary: Path
    """The TMPDIR of the step."""
    log: Path
    context: Context
    has_open_others: Callable[[], bool]
    """Whether another step of the run that does not wait for this one has not ended."""
    report_exit: Callable[[int], None]
    """Receives the exit code of the step's process."""
    report_memory: Callable[[memory.Memory | None], None]
    """Receives the peak memory of the step's process."""
    report_custom_job: Callable[[JobStatus], None]
    """Receives the status of the step's custom job."""
    own_endpoint: StepFile | None = None
    """How a step that creates jobs finds the API; None: as all steps of the run."""

    @property
    def step_file(self) -> StepFile:
        """Return how the step finds the API."""
        return self.own_endpoint or self.context.credentials.step_file

    @property
    def container(self) -> Container:
        """Return the container spec of a step that has one."""
        if not isinstance(self.executor, Container):
            raise TypeError(f"{self.label} has no container")
        return self.executor

    def command(self) -> list[str]:
        """Return the container's command with Concat and IfPresent flattened and placeholders unresolved."""
        return self.expand(self.container.command)

    def arguments(self) -> list[str]:
        """Return the container's args with Concat and IfPresent flattened and placeholders unresolved."""
        return self.expand(self.container.args)

    def expand(self, words: tuple[str, ...]) -> list[str]:
        """Flatten the structures in these templates."""
        try:
            return expand_arguments(words, present_inputs(self.executor_input))
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def resolve(self, template: str) -> str:
        """Return the template with its placeholders replaced."""
        try:
            return resolve_text(template, self.scope)
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None

    def resolve_word(self, template: str) -> str:
        """Return a word of a command with its placeholders replaced.

        Paths within a longer text are mostly in the script of a shell. As on Vertex AI they have no character there
        that a shell would take for something else: an unusual work folder is replaced by a link to it.
        """
        template = self.context.buckets.to_local_paths(template)
        text, work_dir = self.resolve(template), str(self.context.work_dir)
        is_whole = template.count("{{$") == 1 and PLACEHOLDER.fullmatch(template)
        if is_whole or _PLAIN_PATH.fullmatch(work_dir) or work_dir not in text:
            return text
        if not self.link.is_symlink():
            self.link.symlink_to(self.context.work_dir)
        return text.replace(work_dir, str(self.link))

    @property
    def link(self) -> Path:
        """Return the link to the work folder that `resolve_word` makes if it needs one."""
        return self.temporary / "work"

    def run(self, prepared: Prepared) -> int:
        """Run a process in the task's folder; return its exit code.

        Raises:
            Cancelled: The run was stopped.
            TaskFailed: It cannot be started, or left a link to what is hidden from it.
        """
        processes = self.context.processes
        process = processes.start(
            prepared.command,
            cwd=self.folder,
            env=prepared.env,
            log=self.log,
            clean_up=prepared.clean_up,
            has_mask=prepared.has_mask,
            program=prepared.program,
            # As on Vertex AI, a step may write to its inputs.
            writable=self.readable[1:],
        )
        code = processes.wait(process)
        machine = nearest.of_step(load_catalogue(), self.container.resources)
        found = memory.of(prepared.command, process.peak_bytes, machine)
        self.report_memory(found)
        if found and found["severity"]:
            self.warn(found["text"])
        for line in process.discarded:
            self.warn(line)
        if prepared.has_mask:
            output = Path(self.executor_input["outputs"]["outputFile"])
            leftovers.check_links(self.folder, processes.mask, self.readable, output)
        processes.check_stopped()
        return code

    @property
    def readable(self) -> tuple[Path, ...]:
        """Return the parts of the work folder that it sees: its run first, and its input artifacts."""
        return self.context.run_dir, *artifact_paths(self.executor_input, work_dir=self.context.work_dir)

    def hides(self, path: Path) -> bool:
        """Return whether a path leads to what is hidden from the step."""
        return self.context.processes.mask.hides(path, self.readable)

    def report(self, text: str) -> None:
        """Show the user an event of this step."""
        self.context.report(f"{self.scope.task['pipeline_task_name']}: {text}")

    def warn(self, text: str) -> None:
        """Report a line about this step, and add it to the record of the run."""
        self.context.warnings.add(f"{self.label}: {text}")

    @property
    def stand_in(self) -> StandIn:
        """Return the stand-in for the container's image."""
        container = self.container
        return self.context.containers.stand_ins.of(container.image, (*container.command, *container.args))

    def environment(self) -> dict[str, str]:
        """Return the user's variables, overridden by the container's, with the interpreter's programs first in PATH.

        Credentials are left out, even where the container sets them, unless the user passes them on.
        """
        env = os.environ | {"PYTHONUNBUFFERED": "1", MARKER: str(self.folder)} | self.context.buckets.variables
        env |= {
            name: self.resolve(self.context.buckets.to_local_paths(value)) for name, value in self.container.env.items()
        }
        env = self.step_file.add_to(self.context.credentials.environment(env, declared=self.container.env.keys()))
        bin_folder = self.stand_in.python.path.parent
        return env | {IMAGES: self.context.images, "PATH": f"{bin_folder}{os.pathsep}{env.get('PATH', os.defpath)}"}

    def add_own(self, env: dict[str, str], base: Path | None = None) -> dict[str, str]:
        """Return the variables with those that only this attempt has: its temporary folder, and its own environment."""
        env = environments.add_own(env, self.temporary, base, self.stand_in.python)
        return self.stand_in.add_path(env) | {"TMPDIR": str(self.temporary)}
