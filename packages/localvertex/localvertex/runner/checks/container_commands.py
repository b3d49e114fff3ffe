"""Container commands of a pipeline: whether and how they can run here, checked before anything starts."""

from collections.abc import Iterator

from localvertex._base.compiled.launchers import launcher_module
from localvertex._base.compiled.payload import mentioned_inputs
from localvertex._base.compiled.spec import Container, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex.containers.choice import Choice
from localvertex.containers.programs import missing
from localvertex.containers.stand_ins import source_of
from localvertex.errors import Refusal
from localvertex.executors import find_executor
from localvertex.executors.container_command import ContainerCommandExecutor
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.executors.python_step import MODULES
from localvertex.jobs import images
from localvertex.values.arguments import expand_arguments
from localvertex.values.placeholders import Unresolvable
from localvertex.values.repository import Repository


def refusals(pipeline: Pipeline, choice: Choice, repository: Repository) -> list[Refusal]:
    """Return one reason for each container command that cannot run here.

    Raises:
        UserError: The engine that the user has named cannot be used.
    """
    reasons: list[Refusal] = []
    for component in pipeline.reachable:
        container = pipeline.executors.get(component.executor)
        if isinstance(container, Container) and _runs_own_command(container) and (text := _problem(container, choice)):
            image = container.image or "(none)"
            is_in_image = bool(container.image) and text != choice.how.problem
            advice = (
                f"; add --engine docker, or give a local command with --image {image}=COMMAND" if is_in_image else ""
            )
            line = f"{container.path}: {text} (image {image!r}){advice}"
            # Without a sandbox, no source would help.
            step, words = container.path, container.command and (*container.command, *container.args)
            way_on = source_of(line, image, words, step, repository) if is_in_image else Refusal(line, step=step)
            reasons.append(way_on)
    return reasons + [
        source_of(f"{path}: {text}", str(container.get("image_uri", "")), _words(container), task.path, repository)
        for task, path, text, container in _jobs(pipeline, choice)
        if text
    ]


def announcement(pipeline: Pipeline, choice: Choice) -> str:
    """Return how the container commands of a pipeline run; empty when it has none."""
    has_commands = any(map(_runs_own_command, pipeline.containers)) or any(True for _ in _jobs(pipeline, choice))
    return choice.how.announcement if has_commands else ""


def _runs_own_command(container: Container) -> bool:
    """Return whether a container runs its own command here, not a replacement or a program of Google's."""
    if container.replacement or launcher_module((*container.command, *container.args)):
        return False
    return isinstance(find_executor(container), ContainerCommandExecutor)


def _problem(container: Container, choice: Choice) -> str:
    """Return why a container's command cannot run; empty when it can, or when only the run can decide."""
    if choice.how.problem or choice.how.runs_images:
        return choice.how.problem
    if not container.command:
        return "the container has no command, and the entry point of its image is not known locally"
    if {*MODULES} & {*container.command} and not any("ephemeral_component" in part for part in container.command):
        return "this is a containerized Python component, whose code is in the image"
    every = (*container.command, *container.args)
    env = choice.stand_ins.of(container.image, every).add_path(container.env)
    for names in (mentioned_inputs(every), set[str]()):
        try:
            words = expand_arguments(every, names)
        except Unresolvable:
            return ""  # The check of the arguments reports it.
        if text := missing(words, choice.shows, env):
            return text
    return ""


def _words(container: JsonObject) -> list[str]:
    return [str(each) for name in ("command", "args") for each in container.get(name) or ()]


def _jobs(pipeline: Pipeline, choice: Choice) -> Iterator[tuple[TaskSpec, str, str, JsonObject]]:
    """Yield task, path, problem and container of each container command in worker pools that the file contains."""
    for task in pipeline.tasks:
        executor, source = pipeline.executor_of(task), task.parameters.get("worker_pool_specs")
        if executor is None or not CustomJobExecutor().accepts(executor) or source is None:
            continue
        for number, pool in enumerate(source.constant if isinstance(source.constant, list) else ()):
            if images.is_foreign_spec(pool, choice):
                path = f"{source.path or task.path}[{number}].container_spec"
                yield task, path, images.problem_of_spec(pool, choice), pool["container_spec"]
