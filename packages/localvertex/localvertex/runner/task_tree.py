"""Dags and loops: the tasks that they open into, and the outputs that they collect when all of these are final."""

from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from localvertex._base.compiled.parameters import ParameterType
from localvertex._base.compiled.spec import Dag, Iterator, OutputSource, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex.runner.task_inputs import InputError, complete_inputs
from localvertex.store.task import Task, Values
from localvertex.values.placeholders import Scope, Unresolvable, as_text, resolve_structure

_MAX_ITEMS = 10_000
"""Most iterations of one ParallelFor: each is a task with a folder, a log and an entry in run.json."""


def root_task(pipeline: Pipeline, inputs: Values, run_dir: Path) -> Task:
    """Return the root as a task that has the pipeline's inputs."""
    spec = TaskSpec(name="root", component="root")
    parameters = {name: value for name, value in inputs.parameters.items() if value is not None}
    inputs = Values(parameters=parameters, artifacts=inputs.artifacts)
    return Task(spec=spec, component=pipeline.root, name="root", path=(), folder=run_dir, inputs=inputs)


def tasks_of(parent: Task, dag: Dag, pipeline: Pipeline) -> dict[str, Task]:
    """Return the tasks of a dag by name, each after those it depends on."""
    return {
        spec.name: Task(
            spec=spec,
            component=pipeline.components[spec.component],
            name=spec.name,
            path=(*parent.path, spec.name),
            folder=parent.folder / spec.name,
            parent=parent,
        )
        for spec in _in_order(dag)
    }


def _in_order(dag: Dag) -> list[TaskSpec]:
    """Return the specs of a dag's tasks, each after those it depends on."""
    graph = {name: [each for each in task.dependencies if each in dag.tasks] for name, task in dag.tasks.items()}
    return [dag.tasks[name] for name in TopologicalSorter(graph).static_order()]


def iterations(loop: Task, scope: Scope) -> dict[str, Task]:
    """Return the iterations of a ParallelFor by index, with complete inputs.

    Raises:
        InputError: The items are not a list, or an item is not of its type.
    """
    return {
        str(index): Task(
            spec=loop.spec,
            component=loop.component,
            name=f"{loop.name}[{index}]",
            path=(*loop.path, str(index)),
            folder=loop.folder / str(index),
            parent=loop,
            iteration=index,
            inputs=values,
        )
        for index, values in enumerate(_complete_items(loop, scope))
    }


def _complete_items(loop: Task, scope: Scope) -> list[Values]:
    """Return the complete inputs of each iteration; what all iterations share is completed only once."""
    items = _loop_items(loop, scope)
    if not items or loop.spec.iterator is None:
        return []
    name = loop.spec.iterator.item_input
    shared = complete_inputs(loop.inputs, loop.component, scope, {}).parameters
    complete = []
    for each in items:
        given = {key: value for key, value in each.parameters.items() if key == name}
        own = complete_inputs(Values(parameters=given), loop.component, scope, {}).parameters
        parameters = shared | {key: value for key, value in own.items() if key == name}
        complete.append(Values(parameters=parameters, artifacts=each.artifacts))
    return complete


def _loop_items(loop: Task, scope: Scope) -> list[Values]:
    """Return the inputs of each iteration of a ParallelFor.

    Raises:
        InputError: The items are not a list.
    """
    iterator = loop.spec.iterator
    if iterator is None:
        raise TypeError(f"{loop.label} is not a loop")
    inputs, name = loop.inputs, iterator.item_input
    if iterator.input_artifact is not None:
        artifacts = inputs.artifacts.get(iterator.input_artifact, [])
        return [Values(parameters=inputs.parameters, artifacts=inputs.artifacts | {name: [each]}) for each in artifacts]
    items = _items(loop, iterator, scope)
    declared = loop.component.input_parameters.get(name)
    if declared is not None and declared.type is ParameterType.STRING:
        # kfp declares the items of a list without an item type as STRING, and writes its conditions accordingly.
        items = [as_text(item) for item in items]
    return [Values(parameters=inputs.parameters | {name: item}, artifacts=inputs.artifacts) for item in items]


def _items(loop: Task, iterator: Iterator, scope: Scope) -> list[Any]:
    """Return the values that a loop iterates over, from its spec or from an input parameter."""
    items: Any = None
    if iterator.items is not None:
        try:
            items = resolve_structure(list(iterator.items), scope)
        except Unresolvable as error:
            raise InputError(str(error)) from None
    elif iterator.input_parameter is not None:
        items = loop.inputs.parameters.get(iterator.input_parameter)
    if isinstance(items, str):
        try:
            items = parse_json(items, "the list of items")
        except UserError as error:
            raise InputError(str(error)) from None
    if not isinstance(items, list):
        raise InputError(f"items of the loop: expected a list, found {items!r}")
    if len(items) > _MAX_ITEMS:
        raise InputError(f"the loop has {len(items)} items; at most {_MAX_ITEMS} can run locally")
    return items


def collect_dag(dag_task: Task) -> Values:
    """Return the outputs of a dag whose tasks are all final; an output whose producer did not run is left out.

    Their types were checked when steps wrote them. The dag's declarations cannot be used: for outputs that a Collected
    takes, kfp's compiler declares LIST already in the dags inside the loop.
    """
    dag = dag_task.component.dag or Dag(tasks={})
    values = Values()
    for name, sources in dag.parameters.items():
        found = _first([(dag_task.children[each.producer].outputs.parameters, each) for each in sources])
        if found is not None:
            values.parameters[name] = found
    for name, sources in dag.artifacts.items():
        found = _first([(dag_task.children[each.producer].outputs.artifacts, each) for each in sources])
        if found is not None:
            values.artifacts[name] = found
    return values


def _first(candidates: list[tuple[JsonObject, OutputSource]]) -> Any:
    """Return the first output that exists: for a OneOf, from the branch that ran."""
    return next((outputs[source.key] for outputs, source in candidates if outputs.get(source.key) is not None), None)


def collect_loop(loop: Task) -> Values:
    """Return the outputs of a ParallelFor, for Collected: by name, the iterations' values in order."""
    dag = loop.component.dag or Dag(tasks={})
    iterations = list(loop.children.values())
    return Values(
        parameters={
            name: [each.outputs.parameters[name] for each in iterations if name in each.outputs.parameters]
            for name in dag.parameters
        },
        artifacts={
            name: [artifact for each in iterations for artifact in each.outputs.artifacts.get(name, [])]
            for name in dag.artifacts
        },
    )
