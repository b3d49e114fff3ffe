"""Forms of kfp 1.8 that need the whole file to be understood."""

import json
from collections.abc import Mapping
from dataclasses import replace

from localvertex_base.compiled.spec import Component, Dag, ParameterSource, TaskSpec
from localvertex_base.userinput.parameters import ParameterType
from localvertex_base.userinput.spelling import quote


def complete(components: Mapping[str, Component], problems: list[str]) -> dict[str, Component]:
    """Return the components with what kfp 1.8 left out.

    An output without its key is the producer's only one. A number for a STRING, as 1 for a `bool`, is its text.

    Args:
        components: All components by name, the root among them.
        problems: Receives the sources for which the output is not clear.
    """
    return {name: _complete(each, components, problems) for name, each in components.items()}


def _complete(component: Component, components: Mapping[str, Component], problems: list[str]) -> Component:
    if component.dag is None:
        return component
    tasks = dict(component.dag.tasks)
    for task in component.dag.tasks.values():
        used = components.get(task.component)
        changes = _named_outputs(task, component.dag, components, problems) | _texts(task, used)
        if changes:
            tasks[task.name] = replace(task, parameters=task.parameters | changes)
    return replace(component, dag=replace(component.dag, tasks=tasks))


def _named_outputs(
    task: TaskSpec, dag: Dag, components: Mapping[str, Component], problems: list[str]
) -> dict[str, ParameterSource]:
    """Return the sources of a task that name no output, with the output."""
    changes = {}
    for name, source in task.parameters.items():
        if source.producer is None or source.output:
            continue
        producer = dag.tasks.get(source.producer)
        found = components.get(producer.component) if producer else None
        outputs = list(found.output_parameters) if found else []
        if len(outputs) == 1:
            changes[name] = replace(source, output=outputs[0])
        else:
            problems.append(
                f"{source.path}.taskOutputParameter: the field 'outputParameterKey' is missing or empty, "
                f"and {quote(source.producer, 120)} has {len(outputs)} outputs"
            )
    return changes


def _texts(task: TaskSpec, component: Component | None) -> dict[str, ParameterSource]:
    """Return the sources of a task that have a number of kfp 1.8 for a text, with its text."""
    declared = component.input_parameters if component else {}
    return {
        name: replace(source, constant=json.dumps(source.constant))
        for name, source in task.parameters.items()
        if source.is_old
        and isinstance(source.constant, int | float)
        and name in declared
        and declared[name].type is ParameterType.STRING
    }
