"""The inputs of a task: their values from the surrounding dag and from the outputs of sibling tasks."""

import json
from typing import Any

from localvertex._base.compiled.parameters import ParameterType, convert
from localvertex._base.compiled.spec import Component, ParameterSource
from localvertex._base.json_object import JsonObject
from localvertex.store.steps import failure
from localvertex.store.task import Artifact, State, Task, Values
from localvertex.values import conditions
from localvertex.values.placeholders import Scope, Unresolvable, as_text, resolve_structure


class InputError(Exception):
    """An input has no value, or one of the wrong type; the text is shown to the user."""


def resolve_inputs(task: Task, siblings: dict[str, Task], scope: Scope, resource_name: str) -> Values:
    """Return the values of all inputs of a task whose upstream tasks are final.

    Raises:
        InputError: A required input has no value or an invalid one.
    """
    around = task.parent.inputs if task.parent else Values()
    values = Values()
    constants: dict[str, ParameterSource] = {}
    for name, source in task.spec.parameters.items():
        if source.input is not None:
            value = around.parameters.get(source.input)
        elif source.producer is not None and source.output is not None:
            value = siblings[source.producer].outputs.parameters.get(source.output)
        elif source.final_status_of is not None:
            value = _final_status(siblings[source.final_status_of], resource_name)
            if _is_text(name, task.component):
                # kfp 1.8 declares it as STRING, and reads it as JSON.
                value = json.dumps(value)
        else:
            constants[name] = source
            continue
        values.parameters[name] = _select(source, value, name, task.component)
    # Constants come last: an f-string refers to other inputs of the same task.
    known = Scope(job=scope.job, task=scope.task, executor_input={"inputs": {"parameterValues": values.parameters}})
    resolved = {
        name: _select(source, _resolve(source.constant, known, name), name, task.component)
        for name, source in constants.items()
    }
    values.parameters |= resolved
    values.artifacts = _artifacts(task, siblings, around)
    return values


def _artifacts(task: Task, siblings: dict[str, Task], around: Values) -> dict[str, list[Artifact]]:
    """Return the input artifacts of a task; leave out those that do not exist."""
    found = {
        name: around.artifacts.get(source.input)
        if source.input is not None
        else siblings[source.producer or ""].outputs.artifacts.get(source.output or "")
        for name, source in task.spec.artifacts.items()
    }
    return {name: artifacts for name, artifacts in found.items() if artifacts is not None}


def _resolve(constant: Any, scope: Scope, name: str) -> Any:
    """Return a constant with its placeholders replaced, except those that a wrapped custom job resolves itself."""
    try:
        return resolve_structure(constant, scope, is_final=False)
    except Unresolvable as error:
        raise InputError(f"input {name!r}: {error}") from None


def _select(source: ParameterSource, value: Any, name: str, component: Component) -> Any:
    """Return the value, or the part of it that the source selects, as text where text is declared.

    kfp declares a field of a loop's item as STRING, whatever its type.
    """
    if source.selector is None or value is None:
        return value
    try:
        part = conditions.select(source.selector, value)
    except conditions.ConditionError as error:
        raise InputError(f"input {name!r}: the selector {source.selector!r} {error}") from None
    return as_text(part) if _is_text(name, component) and part is not None else part


def _is_text(name: str, component: Component) -> bool:
    declared = component.input_parameters.get(name)
    return declared is not None and declared.type is ParameterType.STRING


def complete_inputs(values: Values, component: Component, scope: Scope, explain: dict[str, str]) -> Values:
    """Return the values with defaults filled in and every parameter converted to its declared type.

    `explain` describes, for inputs without a value, where it should have come from.

    Raises:
        InputError: A required input is missing, or a value is not of its type.
    """
    given = {name: value for name, value in values.parameters.items() if value is not None}
    parameters = given | _defaults(given, component, scope)
    for name, declared in component.input_parameters.items():
        if name not in parameters:
            # A dag may lack an input that none of its steps requires; a step that does require it reports it.
            if declared.is_required and component.dag is None:
                raise InputError(f"input {name!r} has no value{explain.get(name, '')}")
            continue
        try:
            parameters[name] = convert(parameters[name], declared.type)
        except ValueError as error:
            raise InputError(f"input {name!r}: expected {declared.type}, {error}") from None
        if declared.literals and parameters[name] not in declared.literals:
            raise InputError(f"input {name!r}: expected one of {list(declared.literals)}, found {parameters[name]!r}")
    for name, artifact in component.input_artifacts.items():
        if name not in values.artifacts and not artifact.is_optional and component.dag is None:
            raise InputError(f"input artifact {name!r} has no value{explain.get(name, '')}")
    return Values(parameters=parameters, artifacts=values.artifacts)


def _defaults(given: JsonObject, component: Component, scope: Scope) -> JsonObject:
    """Return the defaults of inputs without a value.

    Those that refer to other inputs come last: GCPC's preview wrapper writes such worker_pool_specs.
    """
    left = {name: each.default for name, each in component.input_parameters.items() if name not in given}
    defaults = {name: value for name, value in left.items() if value is not None and "$.inputs." not in str(value)}
    defaults = {name: _resolve(value, scope, name) for name, value in defaults.items()}
    known = Scope(job=scope.job, task=scope.task, executor_input={"inputs": {"parameterValues": given | defaults}})
    referring = {name: value for name, value in left.items() if value is not None and name not in defaults}
    return defaults | {name: _resolve(value, known, name) for name, value in referring.items()}


def explanations(task: Task, siblings: dict[str, Task]) -> dict[str, str]:
    """Return, for each input from a sibling, what became of that sibling."""
    sources: JsonObject = {**task.spec.parameters, **task.spec.artifacts}
    result = {}
    for name, source in sources.items():
        if source.producer is not None:
            producer = siblings[source.producer]
            result[name] = f": its producer {producer.name!r} is {producer.state} and has no output {source.output!r}"
    return result


def _final_status(task: Task, resource_name: str) -> JsonObject:
    """Return the PipelineTaskFinalStatus of a task, in the JSON form that kfp's executor reads.

    The error is empty when the state is SUCCEEDED; the executors of kfp up to 2.9 fail without one.
    """
    failed = [each for each in task.walk() if each.state is State.FAILED and each.error]
    # The deepest failure has the real text; a dag's own only names its children.
    message = next((failure.sentence(each) for each in failed if each.is_step), task.error)
    has_error = bool(message) and not task.state.has_outputs
    return {
        "state": "SUCCEEDED" if task.state.has_outputs else str(task.state),
        "pipelineJobResourceName": resource_name,
        "pipelineTaskName": task.spec.name,
        # Code 9 is FAILED_PRECONDITION, which the service reports for a failed user container.
        "error": {"code": 9, "message": message} if has_error else {},
    }
