"""Container components: their command, if its program is on this machine, or what `--image` says instead."""

import os
import shutil
import tempfile
from typing import ClassVar

from compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Job
from localvertex.executors.python_step import MODULE, bin_folder
from localvertex.processes import logs
from localvertex.values.arguments import expand_arguments, mentioned_inputs
from localvertex.values.placeholders import PLACEHOLDER, Unresolvable

WARNING = (
    "commands of container components run on this machine, not in their images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)


class ContainerCommand:
    """`@dsl.container_component` steps, and whatever else has a command."""

    name: ClassVar[str] = "container command"

    def accepts(self, executor: Container | Importer) -> bool:
        """Any container that is none of the others'."""
        return isinstance(executor, Container)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Life-cycle hooks, and commands whose program is in the image only."""
        if not isinstance(executor, Container):
            return []
        reasons = []
        if executor.has_lifecycle:
            reasons.append(f"{executor.place}.lifecycle: life-cycle hooks do not run locally")
        if problem := "" if executor.replacement else missing_program(executor):
            image = executor.image or "(none)"
            advice = f"; say what runs instead with --image {image}=COMMAND" if executor.image else ""
            reasons.append(f"{executor.place}: {problem} (image {image!r}){advice}")
        return reasons

    def execute(self, job: Job) -> None:
        """Runs the command in the task's folder, its temporary files in a folder that goes afterwards."""
        job.context.warnings.say(WARNING)
        command = [*job.container.replacement, *map(job.resolve, [*job.command(), *job.arguments()])]
        if not command:
            raise TaskFailed("nothing is left of the command", is_retryable=False)
        with tempfile.TemporaryDirectory(prefix="localvertex-", ignore_cleanup_errors=True) as temporary:
            env = job.environment(bin_folder()) | {"TMPDIR": temporary}
            code = job.run(command, env)
        job.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, job.log), exit_code=code)


def missing_program(container: Container) -> str:
    """Why a container's command cannot run here; empty when it can, or when that is known only while it runs."""
    if not container.command:
        return "it has no command, and the entry point of its image is not known here"
    if MODULE in container.command and not any("ephemeral_component" in part for part in container.command):
        return "a containerized Python component: its code is in the image"
    for names in (mentioned_inputs(container.command), set[str]()):
        try:
            words = expand_arguments(container.command, names)
        except Unresolvable:
            return ""  # Said by the check of the arguments.
        if words and not PLACEHOLDER.search(words[0]) and not find_program(words[0]):
            return f"the program {' '.join(words[0].split())[:80]!r} is not on this machine"
    return ""


def find_program(name: str) -> str | None:
    """Where a program is, this interpreter's own first."""
    try:
        # A relative path would be one in the image.
        if os.sep in name and not os.path.isabs(name):
            return None
        return shutil.which(name, path=f"{bin_folder()}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    except ValueError:
        return None
