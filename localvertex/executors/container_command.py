"""Container components: run their command, if its program is installed, or the one that `--image` gives instead."""

import os
import shutil
from typing import ClassVar

from compiled.launchers import started_module
from compiled.payload import PLACEHOLDER, mentioned_inputs
from compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.python_step import MODULES, bin_folder
from localvertex.processes import logs
from localvertex.values.arguments import expand_arguments
from localvertex.values.placeholders import Unresolvable

_WARNING = (
    "commands of container components run on this machine, not in their images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)


class ContainerCommandExecutor:
    """Executes `@dsl.container_component` steps and all other containers with a command."""

    name: ClassVar[str] = "container command"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept any container; this executor comes last."""
        return isinstance(executor, Container)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse life-cycle hooks, and commands whose program is only in the image."""
        if not isinstance(executor, Container):
            return []
        reasons = []
        if executor.has_lifecycle:
            reasons.append(f"{executor.path}.lifecycle: life-cycle hooks do not run locally")
        if problem := "" if executor.replacement else _missing_program(executor):
            image = executor.image or "(none)"
            advice = f"; give a local command with --image {image}=COMMAND" if executor.image else ""
            reasons.append(f"{executor.path}: {problem} (image {image!r}){advice}")
        return reasons

    def execute(self, attempt: Attempt) -> None:
        """Run the command in the task's folder."""
        attempt.context.warnings.add(_WARNING)
        words, arguments = (
            [attempt.resolve(attempt.context.buckets.localised(each)) for each in part]
            for part in (attempt.command(), attempt.arguments())
        )
        # The check before the run does not know what placeholders in the command become.
        if not attempt.context.allow_cloud_launchers and (module := started_module(words, arguments)):
            raise TaskFailed(f"the command would start Google's {module}, which does not run here", is_retryable=False)
        command = [*attempt.container.replacement, *words, *arguments]
        if not command:
            raise TaskFailed("the command is empty after its placeholders were resolved", is_retryable=False)
        env = attempt.environment(bin_folder())
        code = attempt.run(command, env | attempt.own_variables(env, bin_folder() / "python3"))
        attempt.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, attempt.log), exit_code=code)


def _missing_program(container: Container) -> str:
    """Return why a container's command cannot run here; empty when it can, or when only the run can decide."""
    if not container.command:
        return "the container has no command, and the entry point of its image is not known locally"
    if {*MODULES} & {*container.command} and not any("ephemeral_component" in part for part in container.command):
        return "this is a containerized Python component, whose code is in the image"
    for names in (mentioned_inputs(container.command), set[str]()):
        try:
            words = expand_arguments(container.command, names)
        except Unresolvable:
            return ""  # The check of the arguments reports it.
        if words and not PLACEHOLDER.search(words[0]) and not _find_program(words[0]):
            return f"the program {' '.join(words[0].split())[:80]!r} is not installed locally"
    return ""


def _find_program(name: str) -> str | None:
    """Return the path of a program, this interpreter's own programs first."""
    try:
        # A relative path would be one in the image.
        if os.sep in name and not os.path.isabs(name):
            return None
        return shutil.which(name, path=f"{bin_folder()}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    except ValueError:
        return None
