"""Forms of kfp 1.8 that need the whole file to be understood."""

from collections.abc import Mapping
from dataclasses import replace

from compiled.spec import Component, TaskSpec


def with_named_outputs(components: Mapping[str, Component], problems: list[str]) -> dict[str, Component]:
    """Return the components with the output named where kfp 1.8 left its key out: the producer's only one.

    Args:
        components: All components by name, the root among them.
        problems: Receives the sources for which the output is not clear.
    """
    return {name: _with_named_outputs(each, components, problems) for name, each in components.items()}


def _with_named_outputs(component: Component, components: Mapping[str, Component], problems: list[str]) -> Component:
    dag = component.dag
    if dag is None or not any(_unnamed(task) for task in dag.tasks.values()):
        return component
    tasks = {}
    for task in dag.tasks.values():
        parameters = dict(task.parameters)
        for name in _unnamed(task):
            source = task.parameters[name]
            producer = dag.tasks.get(source.producer or "")
            found = components.get(producer.component) if producer else None
            outputs = list(found.output_parameters) if found else []
            if len(outputs) == 1:
                parameters[name] = replace(source, output=outputs[0])
            else:
                problems.append(
                    f"{source.path}.taskOutputParameter: the field 'outputParameterKey' is missing or empty, "
                    f"and {source.producer!r} has {len(outputs)} outputs"
                )
        tasks[task.name] = replace(task, parameters=parameters)
    return replace(component, dag=replace(dag, tasks=tasks))


def _unnamed(task: TaskSpec) -> list[str]:
    return [name for name, source in task.parameters.items() if source.producer is not None and source.output == ""]
