"""The tasks that appear when a dag or a loop is opened."""

from graphlib import TopologicalSorter

from compiled.spec import Dag, Pipeline, TaskSpec
from localvertex.runner.task_inputs import complete_inputs
from localvertex.runner.task_outputs import loop_items
from localvertex.state.task import Task
from localvertex.values.placeholders import Scope


def tasks_of(parent: Task, dag: Dag, pipeline: Pipeline) -> dict[str, Task]:
    """The tasks of a dag by name, each after those it depends on."""
    return {
        spec.name: Task(
            spec=spec,
            component=pipeline.components[spec.component],
            name=spec.name,
            path=(*parent.path, spec.name),
            folder=parent.folder / spec.name,
            parent=parent,
        )
        for spec in in_order(dag)
    }


def in_order(dag: Dag) -> list[TaskSpec]:
    """The tasks of a dag, each after those it depends on."""
    graph = {name: [each for each in task.dependencies if each in dag.tasks] for name, task in dag.tasks.items()}
    return [dag.tasks[name] for name in TopologicalSorter(graph).static_order()]


def iterations(loop: Task, scope: Scope) -> dict[str, Task]:
    """The iterations of a ParallelFor by index, their inputs complete.

    Raises:
        InputError: what is iterated over is not a list, or an item is not of its type.
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
            inputs=complete_inputs(values, loop.component, scope, {}),
        )
        for index, values in enumerate(loop_items(loop, scope))
    }
