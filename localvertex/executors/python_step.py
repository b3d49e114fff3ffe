"""Lightweight Python components: their own command, under this interpreter whatever the image."""

import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors import step_environment
from localvertex.executors.attempt import Job
from localvertex.processes import logs
from localvertex.processes.forked_steps import program_of
from localvertex.processes.processes import check_arguments

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
            code = run(resolved, job, folder, env, Path(temporary))
        job.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, job.log), exit_code=code)


def run(command: list[str], job: Job, folder: Path, env: dict[str, str], temporary: Path) -> int:
    """Runs the step's command: forked where that is the same as executing it, which takes a quarter of the time."""
    processes = job.context.processes
    check_arguments(command)
    processes.check_stopped()
    program = program_of(command)
    # What a step sets for itself may be read while Python starts; such a step starts a Python of its own.
    server = job.context.fork_servers.find(folder / "python3", env) if program and not job.container.env else None
    process = (
        program
        and server
        and server.start(
            program,
            cwd=job.folder,
            env=env,
            log=job.log,
            temporary=temporary,
            grace_seconds=processes.grace_seconds,
            hold=processes.hold,
        )
    )
    if not process:
        return job.run(command, env)
    processes.add(process)
    return job.wait(process)


def bin_folder() -> Path:
    """Where this interpreter and its programs are; not resolved, a virtual environment's python is a link."""
    return Path(sys.executable).parent
