"""Find the worker pools that need their container image: their command is not Python code of this machine.

A replica that runs this Python with a module or a script that is here, a Python package or a Python component of kfp is
a process as before. All others are container commands, and run as a pipeline's steps do.
"""

import os
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.commands import is_foreign_command, problem_of_command
from localvertex.containers.programs import missing
from localvertex.errors import TaskFailed
from localvertex.jobs.job import CustomJob, Pool


def is_container_command(pool: Pool, choice: Choice) -> bool:
    """Return whether a pool's command runs as a container command."""
    if pool.is_python_package or pool.has_local_command or pool.is_reduction_server:
        return False
    return is_foreign_command(pool.command, pool.env, choice)


def check(job: CustomJob, choice: Choice) -> None:
    """Refuse commands that cannot run here.

    Raises:
        TaskFailed: A pool has one.
    """
    for pool in job.pools:
        where = f"worker_pool_specs[{pool.number}].container_spec"
        if pool.is_python_package or pool.has_local_command or pool.is_reduction_server:
            continue
        try:
            text = problem_of_command(pool.command, pool.env, choice)
        except UserError as error:
            text = str(error)
        if text:
            raise TaskFailed(f"{where}: {text} (image {pool.image_uri!r})", is_retryable=False)
        has_peers = len(job.replicas) > 1 and not (choice.options.allow_network or choice.options.allow_host_commands)
        if is_container_command(pool, choice) and has_peers:
            raise TaskFailed(
                f"{where}: replicas in containers find each other only with --allow-network; add it",
                is_retryable=False,
            )


def is_foreign_spec(spec: Any, choice: Choice) -> bool:
    """Return whether a WorkerPoolSpec in a pipeline is a container command that is refused or announced."""
    words, env = _read(spec, choice)
    return bool(words) and (is_foreign_command(words, env, choice) or bool(missing([*words], os.path.exists, env)))


def problem_of_spec(spec: Any, choice: Choice) -> str:
    """Return why such a command cannot run here; empty when it can, or when only the run can decide."""
    words, env = _read(spec, choice)
    return problem_of_command(words, env, choice)


def _read(spec: Any, choice: Choice) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command and variables of a WorkerPoolSpec as far as they can be read; the run checks it."""
    container = spec.get("container_spec") if isinstance(spec, dict) else None
    image = container.get("image_uri") if isinstance(container, dict) else None
    if not isinstance(container, dict) or image in choice.command_prefixes:
        return (), {}
    command, arguments, env = (container.get(name) or [] for name in ("command", "args", "env"))
    if not (command and isinstance(command, list) and isinstance(arguments, list) and isinstance(env, list)):
        return (), {}
    words = (*command, *arguments)
    names = {str(each.get("name")): "" for each in env if isinstance(each, dict)}
    if not all(isinstance(word, str) for word in words):
        return (), {}
    stand_in = choice.stand_ins.of(str(image), words)
    try:
        # `missing_command` reports missing programs.
        if stand_in.words(command, arguments):
            return (), {}
        return words if choice.options.engine else stand_in.localized(words), stand_in.add_path(names)
    except UserError:
        return (), {}
