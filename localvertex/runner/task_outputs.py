"""What comes out of dags and loops, and which failures inside them count."""

from typing import Any

from compiled.spec import Dag, OutputSource, ParameterType
from localvertex.runner.task_inputs import InputError
from localvertex.state.task import State, Task, Values
from localvertex.values.json_text import parse_json
from localvertex.values.placeholders import Scope, Unresolvable, resolve_structure
from localvertex.values.values import as_text
from userinput.errors import UserError

MAX_ITEMS = 10_000
"""Iterations of one ParallelFor: each is a task with a folder, a log and an entry in run.json."""


def loop_items(loop: Task, scope: Scope) -> list[Values]:
    """The inputs of each iteration of a ParallelFor.

    Raises:
        InputError: what is iterated over is not a list.
    """
    iterator = loop.spec.iterator
    if iterator is None:
        raise TypeError(f"{loop.label} is no loop")
    if iterator.input_artifact is not None:
        artifacts = loop.inputs.artifacts.get(iterator.input_artifact, [])
        return [
            Values(parameters=loop.inputs.parameters, artifacts=loop.inputs.artifacts | {iterator.item_input: [each]})
            for each in artifacts
        ]
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
            items = parse_json(items, "items")
        except UserError as error:
            raise InputError(str(error)) from None
    if not isinstance(items, list):
        raise InputError(f"the items of the loop: expected a list, found {items!r}")
    if len(items) > MAX_ITEMS:
        raise InputError(f"the loop has {len(items)} items; at most {MAX_ITEMS} run here")
    declared = loop.component.input_parameters.get(iterator.item_input)
    if declared is not None and declared.type is ParameterType.STRING:
        # kfp declares the items of a list without an item type as STRING, and writes conditions to match.
        items = [as_text(item) for item in items]
    return [
        Values(parameters=loop.inputs.parameters | {iterator.item_input: item}, artifacts=loop.inputs.artifacts)
        for item in items
    ]


def collect_dag(dag_task: Task) -> Values:
    """The outputs of a dag whose tasks are all final; an output whose producer did not run is left out.

    Their types were checked when steps made them. What the dag declares is no measure: kfp's compiler declares LIST for
    outputs that a Collected takes, in the dags inside the loop already.
    """
    dag = dag_task.component.dag or Dag(tasks={})
    values = Values()
    for name, sources in dag.parameters.items():
        found = first([(dag_task.children[each.producer].outputs.parameters, each) for each in sources])
        if found is not None:
            values.parameters[name] = found
    for name, sources in dag.artifacts.items():
        found = first([(dag_task.children[each.producer].outputs.artifacts, each) for each in sources])
        if found is not None:
            values.artifacts[name] = found
    return values


def first(candidates: list[tuple[dict[str, Any], OutputSource]]) -> Any:
    """The first output that is there: with a OneOf, that of the branch that ran."""
    return next((outputs[source.key] for outputs, source in candidates if outputs.get(source.key) is not None), None)


def collect_loop(loop: Task) -> Values:
    """The outputs of a ParallelFor, for Collected: for each name the list of the iterations' values, in order."""
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


def tolerated(child: Task, parent: Task) -> bool:
    """Whether a task's failure leaves its dag unharmed: a task that ignores upstream failures went on from it.

    An exit task has the same trigger rule, but tells of a failure rather than making up for it: it follows an
    `exit-handler-N` dag, or takes the final status.
    """
    if child.state is not State.FAILED or child.name.startswith("exit-handler-"):
        return False
    return any(
        child.name in task.spec.dependencies
        and task.spec.runs_after_failure
        and task.state.has_outputs
        and not any(source.final_status_of for source in task.spec.parameters.values())
        for task in parent.children.values()
    )
