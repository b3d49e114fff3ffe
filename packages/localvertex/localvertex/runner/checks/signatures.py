"""Check steps against their signatures before anything runs: inputs without a value, constants of another type."""

from collections.abc import Iterator
from typing import Any

from localvertex._base.compiled.parameters import ParameterSpec, convert
from localvertex._base.compiled.payload import PLACEHOLDER
from localvertex._base.compiled.spec import Component, Container, Importer, TaskSpec
from localvertex._base.userinput.spelling import quote
from localvertex.values.placeholders import references

_MAX_RETRIES = 1_000
"""Maximum retries of a step; with more, a step that never succeeds would repeat for hours."""


def of_task(task: TaskSpec, component: Component) -> list[str]:
    """Return the problems of the inputs and retries of a task of a dag, one reason each."""
    reasons = [*_constants(task, component)]
    if task.retry.max_retries > _MAX_RETRIES:
        path = f"{task.path}.retryPolicy.maxRetryCount"
        reasons.append(f"{path}: {task.retry.max_retries} retries; at most {_MAX_RETRIES} can run locally")
    # A given step reads nothing.
    if component.dag is None and task.iterator is None and component.given is None:
        reasons += _missing_inputs(task, component)
    return reasons


def _missing_inputs(task: TaskSpec, component: Component) -> Iterator[str]:
    """Yield the inputs of a step that the task does not set; a dag may lack those that none of its steps needs."""
    for name, declared in component.input_parameters.items():
        source = task.parameters.get(name)
        if declared.is_required and (source is None or source.is_null):
            yield f"{task.path}.inputs.parameters: the step needs {name!r} ({declared.type}), which has no value"
    for name, artifact in component.input_artifacts.items():
        if not artifact.is_optional and name not in task.artifacts:
            yield f"{task.path}.inputs.artifacts: the step needs {name!r} ({artifact.schema_title}), which has no value"


def _constants(task: TaskSpec, component: Component) -> Iterator[str]:
    for name, declared in component.input_parameters.items():
        source = task.parameters.get(name)
        if source is not None and source.constant is not None and (problem := _problem(source.constant, declared)):
            yield f"{source.path}: {problem}"


def of_step(component: Component, executor: Container | Importer) -> list[str]:
    """Return the problems of a step itself: its defaults, and the words of its command."""
    base = f"{component.path}.inputDefinitions.parameters"
    reasons = [
        f"{base}.{name}.defaultValue: {problem}"
        for name, declared in component.input_parameters.items()
        if declared.default is not None and (problem := _problem(declared.default, declared))
    ]
    if isinstance(executor, Container):
        reasons += _words(component, executor)
    return reasons


def _problem(value: Any, declared: ParameterSpec) -> str:
    """Return why a value in the file cannot be an input; empty if it can, or if only the run can decide."""
    if PLACEHOLDER.search(str(value)):
        return ""
    try:
        converted = convert(value, declared.type)
    except ValueError as error:
        return f"expected {declared.type}, {error}"
    if declared.literals and converted not in declared.literals:
        return f"expected one of {', '.join(map(str, declared.literals))}, found {quote(converted)}"
    return ""


def _words(component: Component, container: Container) -> Iterator[str]:
    """Yield placeholders for what the step does not declare, and invalid names of variables."""
    for field, words in (("command", container.command), ("args", container.args), ("env", container.env.values())):
        path = f"{container.path}.{field}"
        for word in words:
            for side, kind, name in references(word):
                declared = getattr(component, f"{side.removesuffix('s')}_{kind}")
                if name not in declared:
                    yield f"{path}: there is a placeholder for {name!r}, which is not among the step's {side} ({kind})"
    for name in container.env:
        if not name or "=" in name:
            yield f"{container.path}.env: {quote(name)} is not a valid variable name; expected no '='"
