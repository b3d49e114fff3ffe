"""What goes into a task: the values of its inputs from the dag around it, and from its siblings' outputs."""

from typing import Any

from compiled.spec import Component, ParameterSource, ParameterType
from localvertex.state.task import State, Task, Values
from localvertex.values import conditions
from localvertex.values.placeholders import Scope, Unresolvable, resolve_structure
from localvertex.values.values import as_text, convert


class InputError(Exception):
    """An input has no value, or one of the wrong type; the text is for the user."""


def resolve_inputs(task: Task, siblings: dict[str, Task], scope: Scope, resource_name: str) -> Values:
    """Values of all inputs of a task whose upstream tasks are final.

    Raises:
        InputError: a required input has no value or a wrong one.
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
            value = final_status(siblings[source.final_status_of], resource_name)
        else:
            constants[name] = source
            continue
        values.parameters[name] = selected(source, value, name, task.component)
    # Constants last: an f-string refers to the other inputs of the same task.
    known = Scope(job=scope.job, task=scope.task, executor_input={"inputs": {"parameterValues": values.parameters}})
    resolved = {
        name: selected(source, resolve(source.constant, known, name), name, task.component)
        for name, source in constants.items()
    }
    values.parameters |= resolved
    for name, artifact in task.spec.artifacts.items():
        if artifact.input is not None:
            found = around.artifacts.get(artifact.input)
        else:
            found = siblings[artifact.producer or ""].outputs.artifacts.get(artifact.output or "")
        if found is not None:
            values.artifacts[name] = found
    return values


def resolve(constant: Any, scope: Scope, name: str) -> Any:
    """A constant with its placeholders replaced, those of a wrapped custom job's command left for the job."""
    try:
        return resolve_structure(constant, scope, is_final=False)
    except Unresolvable as error:
        raise InputError(f"input {name!r}: {error}") from None


def selected(source: ParameterSource, value: Any, name: str, component: Component) -> Any:
    """The value, or the part of it that the source selects, as text where text is declared.

    kfp declares a field of a loop's item as STRING, whatever is in it.
    """
    if source.selector is None or value is None:
        return value
    try:
        part = conditions.select(source.selector, value)
    except conditions.ConditionError as error:
        raise InputError(f"input {name!r}: the selector {source.selector!r} {error}") from None
    declared = component.input_parameters.get(name)
    is_text = declared is not None and declared.type is ParameterType.STRING
    return as_text(part) if is_text and part is not None else part


def complete_inputs(values: Values, component: Component, scope: Scope, explain: dict[str, str]) -> Values:
    """The values with defaults filled in and every parameter as its declared type.

    `explain` says, for inputs that have no value, where it should have come from.

    Raises:
        InputError: a required input is missing, or a value is not of its type.
    """
    parameters = {name: value for name, value in values.parameters.items() if value is not None}
    for name, declared in component.input_parameters.items():
        if name not in parameters and declared.default is not None:
            parameters[name] = resolve(declared.default, scope, name)
        if name not in parameters:
            # A dag hands on what it was not given; the step that cannot do without says so.
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


def explanations(task: Task, siblings: dict[str, Task]) -> dict[str, str]:
    """For each input that a sibling should have given: what became of that sibling."""
    sources: dict[str, Any] = {**task.spec.parameters, **task.spec.artifacts}
    result = {}
    for name, source in sources.items():
        if source.producer is not None:
            producer = siblings[source.producer]
            result[name] = f": its producer {producer.name!r} is {producer.state} and gave no {source.output!r}"
    return result


def final_status(task: Task, resource_name: str) -> dict[str, Any]:
    """PipelineTaskFinalStatus of a task, in the JSON form that kfp's executor reads."""
    failed = [each for each in task.walk() if each.state is State.FAILED and each.error]
    # The deepest failure has the real text; a dag's own is only about its children.
    message = next((f"{each.title}: {each.error}" for each in failed if each.is_step), task.error)
    status: dict[str, Any] = {
        "state": "SUCCEEDED" if task.state.has_outputs else str(task.state),
        "pipelineJobResourceName": resource_name,
        "pipelineTaskName": task.spec.name,
    }
    # Code 9 is FAILED_PRECONDITION, what the service reports for a failed user container.
    return status | ({"error": {"code": 9, "message": message}} if message else {})
