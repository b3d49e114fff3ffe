"""Lightweight Python components: their own command, under this interpreter whatever the image."""

import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from localvertex import logs, step_environment
from localvertex.errors import TaskFailed
from localvertex.job import Job
from localvertex.spec import Container, Importer

MODULE = "kfp.dsl.executor_main"

WARNING = (
    f"steps run in this Python ({sys.version_info.major}.{sys.version_info.minor}), not in their images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)


class PythonStep:
    """`@dsl.component` steps. Those that install packages get an environment of their own, kept for the next run."""

    name: ClassVar[str] = "python step"

    def accepts(self, executor: Container | Importer) -> bool:
        """A command that carries its function's source and runs it with kfp's executor."""
        if not isinstance(executor, Container) or executor.command[:1] != ("sh",):
            return False
        return any(MODULE in part and "ephemeral_component" in part for part in executor.command)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Life-cycle hooks, and an interpreter that the command would not find."""
        reasons = []
        if isinstance(executor, Container) and executor.has_lifecycle:
            reasons.append(f"{executor.place}.lifecycle: life-cycle hooks do not run locally")
        if not (bin_folder() / "python3").exists():
            reasons.append(f"{executor.place}: there is no python3 beside {sys.executable}, which steps call")
        return reasons

    def execute(self, job: Job) -> None:
        """Runs the command in the task's folder, its temporary files in a folder that goes afterwards."""
        job.context.warnings.say(WARNING)
        command = [*job.container.command, *job.arguments()]
        with tempfile.TemporaryDirectory(prefix="localvertex-", ignore_cleanup_errors=True) as temporary:
            folder, command = step_environment.for_command(command, job, bin_folder())
            resolved = [job.resolve(part) for part in command]
            env = job.environment(folder) | {"TMPDIR": temporary}
            code = job.context.processes.run(resolved, cwd=job.folder, env=env, log=job.log)
        job.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, job.log), exit_code=code)


def bin_folder() -> Path:
    """Where this interpreter and its programs are; not resolved, a virtual environment's python is a link."""
    return Path(sys.executable).parent
