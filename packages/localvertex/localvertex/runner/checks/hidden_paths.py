"""Paths of this machine that a pipeline's file names, and that its container commands will not find in the sandbox."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from localvertex.containers.call import inside
from localvertex.containers.choice import Choice
from localvertex.containers.mounts import exists, texts_in
from localvertex.runner.checks.container_commands import runs_own_command
from localvertex_base.compiled.spec import Component, Container, Importer, Pipeline, TaskSpec

_ADVICE = (
    "which the sandbox of container commands does not show; give another path with --parameter or --input-artifact in "
    "place of the one in the file, or add --allow-host-commands"
)


def warnings(pipeline: Pipeline, components: Iterable[Component], choice: Choice, shown: Iterable[Path]) -> list[str]:
    """Return one sentence for each hidden path of importers, constants and words that reach a container command.

    Not a refusal: the step may not run, or may use only the address.

    Args:
        pipeline: The pipeline.
        components: Those that can run, root first.
        choice: How container commands run.
        shown: Paths that they see besides the system.
    """
    components = list(components)
    found = [pair for component in components for pair in _imported_uris(component, pipeline)]
    found += [pair for component in components for pair in _constants(component, pipeline)]
    for component in components:
        container = pipeline.executors.get(component.executor)
        if isinstance(container, Container) and runs_own_command(container):
            words = (*container.command, *container.args, *container.env.values())
            found += [(container.path, text) for text in texts_in([*words, *(w.partition("=")[2] for w in words)])]
    return [f"{where}: {path} is on this machine, {_ADVICE}" for where, path in _hidden_paths(found, choice, shown)]


def _hidden_paths(found: Iterable[tuple[str, str]], choice: Choice, shown: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the paths that exist here and are not in the sandbox. It is only tried when there is a path."""
    for where, path in dict.fromkeys(found):
        # Folders at the top, such as /tmp, are in the sandbox, and empty.
        if not os.path.isabs(path) or len(Path(path).parts) < 3 or not exists(path):
            continue
        how = choice.how
        if how.confines and not how.runs_images and not how.shows(path) and not inside(path, shown):
            yield where, path


def _imported_uris(component: Component, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield the literal URIs of a dag's importers whose artifacts reach a container command."""
    tasks: Mapping[str, TaskSpec] = component.dag.tasks if component.dag else {}
    for task in tasks.values():
        for name, source in task.artifacts.items():
            producer = tasks.get(source.producer or "")
            if producer is not None and (uri := _uri(producer, pipeline)) and _reaches(task, name, pipeline):
                yield producer.path, uri


def _uri(task: TaskSpec, pipeline: Pipeline) -> str:
    used = pipeline.components.get(task.component)
    executor = pipeline.executors.get(used.executor) if used else None
    if not isinstance(executor, Importer):
        return ""
    source = task.parameters.get("uri")
    text = executor.uri if executor.uri is not None else (source.constant if source else "")
    return text if isinstance(text, str) else ""


def _reaches(task: TaskSpec, name: str, pipeline: Pipeline) -> bool:
    """Return whether an input artifact of a task is one of a container command, in it or in a dag below."""
    used = pipeline.components.get(task.component)
    if used is None:
        return False
    if used.dag is None:
        executor = pipeline.executors.get(used.executor)
        return isinstance(executor, Container) and runs_own_command(executor)
    inner = (
        (each, key)
        for each in used.dag.tasks.values()
        for key, source in each.artifacts.items()
        if source.input == name
    )
    return any(_reaches(each, key, pipeline) for each, key in inner)


def _constants(component: Component, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield the texts among the constants and defaults of a dag's tasks that a container command receives."""
    for task in component.dag.tasks.values() if component.dag else ():
        used = pipeline.components.get(task.component)
        executor = pipeline.executors.get(used.executor) if used else None
        if used is None or not isinstance(executor, Container) or not runs_own_command(executor):
            continue
        constants = {name: source.constant for name, source in task.parameters.items()}
        defaults = {name: each.default for name, each in used.input_parameters.items() if name not in constants}
        for name, value in (constants | defaults).items():
            yield from ((f"{task.path}.inputs.parameters.{name}", text) for text in texts_in(value))
