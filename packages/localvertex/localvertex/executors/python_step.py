"""Lightweight Python components: run their command with this interpreter, whatever their image."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.processes import environments, logs, old_kfp, pins, read_only
from localvertex.processes.forked_steps import program_of
from localvertex.processes.processes import check_arguments
from localvertex.store import executor_files
from localvertex_base.compiled.spec import Container, Importer

MODULE = "kfp.dsl.executor_main"

_MODULE_1_8 = "kfp.v2.components.executor_main"
"""The executor of kfp 1.8 with its `v2` compiler."""

MODULES = (MODULE, "kfp.components.executor_main", _MODULE_1_8)
"""The executors of kfp 2.1 and later, of 2.0 and of 1.8."""

_INSTALLS = re.compile(r"python3? -m pip install|pip3? install")

_OWN_ENVIRONMENT = re.compile(r"^tmp=.*\npython3 -m venv .*\n\. .*/bin/activate\"?\n", re.MULTILINE)
"""Added by `@dsl.component(use_venv=True)` (kfp 2.17, component_factory.py); here each step has its own environment."""

_WARNING = (
    f"steps run in this Python ({sys.version_info.major}.{sys.version_info.minor}), not in their container images; "
    "CPU, memory and accelerator settings of steps have no effect here"
)


class PythonStepExecutor:
    """Executes `@dsl.component` steps. One that installs packages gets its own environment, kept for later runs."""

    name: ClassVar[str] = "python step"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a command that contains its function's source and runs it with kfp's executor."""
        if not isinstance(executor, Container) or executor.command[:1] != ("sh",):
            return False
        return any(module in part and "ephemeral_component" in part for part in executor.command for module in MODULES)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse life-cycle hooks, and an interpreter that the command would not find."""
        reasons = []
        if isinstance(executor, Container) and executor.has_lifecycle:
            reasons.append(f"{executor.path}.lifecycle: life-cycle hooks do not run locally")
        if not (bin_folder() / "python3").exists():
            reasons.append(f"{executor.path}: steps call python3, which does not exist next to {sys.executable}")
        return reasons

    def execute(self, attempt: Attempt) -> None:
        """Run the command in the task's folder."""
        attempt.context.warnings.add(_WARNING)
        command = [*attempt.container.command, *attempt.arguments()]
        if any(_MODULE_1_8 in part for part in command):
            executor_files.add_typed_values(attempt.executor_input)
        folder, command = _own_environment(command, attempt, bin_folder())
        resolved = attempt.context.buckets.mount([attempt.resolve(part) for part in command])
        code = run(resolved, attempt, folder)
        attempt.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, attempt.log), exit_code=code)


def run(command: list[str], attempt: Attempt, folder: Path) -> int:
    """Run the step's command, forked where that makes no difference: a fork takes a quarter of the time."""
    processes = attempt.context.processes
    check_arguments(command)
    processes.check_stopped()
    program = program_of(command)
    env, python = attempt.environment(folder), folder / "python3"
    own = attempt.own_variables(env, python)
    # Python reads some variables while it starts, so a step that sets variables starts its own Python.
    can_fork = program is not None and not attempt.container.env
    has_own = folder != bin_folder()
    view = read_only.view() if has_own else ()
    server = attempt.context.fork_servers.find(python, env, view) if can_fork else None
    process = (
        program
        and server
        and server.start(
            program,
            cwd=attempt.folder,
            env=env | own,
            own=own,
            log=attempt.log,
            secrets=processes.secrets(),
            temporary=attempt.temporary,
            grace_seconds=processes.grace_seconds,
            hold=processes.hold,
        )
    )
    if not process:
        env |= own
        return attempt.run(*(read_only.prepared(command, env) if has_own else (command, env)))
    processes.add(process)
    return attempt.wait(process)


def _own_environment(command: list[str], attempt: Attempt, bin_folder: Path) -> tuple[Path, list[str]]:
    """Return the folder of programs for a step's command, and the part of the command that remains to be run.

    kfp writes `sh -c '<pip install ...> && "$0" "$@"' <the step's own command>`. The first part runs once, when the
    environment is built. A command of another form runs as a whole in its own environment.
    """
    if not any(_INSTALLS.search(part) for part in command[:3]):
        return bin_folder, command
    script = pins.replaced(_OWN_ENVIRONMENT.sub("", command[2]), attempt.context.pins)
    can_split = _can_split(command)
    is_old = not any(MODULE in part for part in command)
    afterwards = ["python3", old_kfp.__file__] if is_old else ["true"]
    install = [*command[:2], script, *afterwards] if can_split else []
    environment = environments.build(
        _identity(script, command),
        install,
        private_dir=attempt.context.private_dir,
        processes=attempt.context.processes,
        cwd=attempt.folder,
        env=attempt.environment(bin_folder),
        log=attempt.log,
    )
    return environment / "bin", command[3:] if can_split else command


def _can_split(command: Sequence[str]) -> bool:
    """Return whether a command installs packages first, and then runs the step."""
    return list(command[:2]) == ["sh", "-c"] and command[2].rstrip().endswith('&& "$0" "$@"')


def _identity(script: str, command: Sequence[str]) -> list[str]:
    """Return what identifies the environment of an install script."""
    return [script] if any(MODULE in part for part in command) else [script, "old kfp"]


def missing_install_script(container: Container, private_dir: Path) -> str:
    """Return the script that installs a step's packages, if that has to be done; otherwise an empty text."""
    command = list(container.command)
    if not any(_INSTALLS.search(part) for part in command[:3]) or not _can_split(command):
        return ""
    script = _OWN_ENVIRONMENT.sub("", command[2])
    return "" if environments.is_complete(_identity(script, command), private_dir) else script


def bin_folder() -> Path:
    """Return the folder of this interpreter, unresolved: the python of a virtual environment is a link."""
    return Path(sys.executable).parent
