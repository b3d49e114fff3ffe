"""The check before a run: reports at once everything that cannot run locally, with its path in the file."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from localvertex._base.compiled import platforms
from localvertex._base.compiled.parameters import ParameterType
from localvertex._base.compiled.spec import Component, Container, Dag, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.nested import parts
from localvertex._base.userinput.spelling import quote
from localvertex.containers.choice import Choice
from localvertex.errors import Refusal
from localvertex.executors import find_executor
from localvertex.runner.checks import cloud_launchers, container_commands, serving_containers, signatures
from localvertex.values import arguments, conditions
from localvertex.values.placeholders import unknown_placeholders
from localvertex.values.repository import Repository

_MAX_TASKS = 10_000

_MAX_DEPTH = 50
"""Levels of nested dags, each a folder inside another. Hand-written pipelines have about five."""


def refusals(pipeline: Pipeline, containers: Choice, repository: Repository) -> list[str]:
    """Return what cannot run here, one line each; an empty list if the pipeline can run."""
    labels = {each.executor for each in pipeline.reachable}
    unsupported = [Refusal(text, step=label) for label, text in pipeline.unsupported.items() if label in labels]
    reasons = [*unsupported, *platforms.refusals(pipeline.platforms)]
    reasons += [*_reference_refusals(pipeline), *circles(pipeline)]
    for component in pipeline.reachable:
        if component.dag is not None:
            reasons += _dag_refusals(component, component.dag, pipeline)
        else:
            reasons += [Refusal(each, step=component.executor) for each in _step_refusals(component, pipeline)]
    reasons += container_commands.refusals(pipeline, containers, repository)
    reasons += serving_containers.refusals(pipeline, containers)
    reasons += cloud_launchers.refusals(pipeline)
    return list(dict.fromkeys(reasons))


def _reference_refusals(pipeline: Pipeline) -> list[str]:
    """Refuse tasks that refer to no component, and components that contain themselves or too much."""
    reasons = [
        f"{task.path}: there is no component {quote(task.component, 120)}"
        for task in pipeline.tasks
        if task.component not in pipeline.components
    ]
    graph = _uses(pipeline)
    if not _circle(graph):
        found = {component.name: component for component in pipeline.reachable}
        reasons += _size_refusals(found, list(TopologicalSorter(graph).static_order()))
    if pipeline.root.name in pipeline.components:
        reasons.append(f"components.{pipeline.root.name}: this name is reserved for the root")
    return reasons


def circles(pipeline: Pipeline) -> list[str]:
    """Return the components that contain each other and the tasks that wait for each other, one line each."""
    reasons = []
    for component in pipeline.reachable:
        tasks = component.dag.tasks if component.dag else {}
        needs = {name: [each for each in task.dependencies if each in tasks] for name, task in tasks.items()}
        if circle := _circle(needs):
            reasons.append(f"{component.path}: tasks wait for each other: {circle}")
    circle = _circle(_uses(pipeline))
    return [*([f"components contain each other: {circle}"] if circle else []), *reasons]


def _uses(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the names of the components that each component contains."""
    every = {each.name: each.dag.tasks.values() if each.dag else () for each in pipeline.reachable}
    return {name: [task.component for task in tasks] for name, tasks in every.items()}


def _circle(graph: Mapping[str, list[str]]) -> str:
    """Return the names in a circle, without the middle if there are many; empty without a circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names = error.args[1]
        return " -> ".join(names if len(names) <= 8 else [*names[:4], "...", *names[-3:]])
    return ""


def _size_refusals(components: dict[str, Component], order: list[str]) -> list[str]:
    """Refuse a pipeline that expands too far; in `order` each component follows those that its tasks use."""
    depths: dict[str, int] = {}
    num_tasks: dict[str, int] = {}
    for name in order:
        dag = components[name].dag if name in components else None
        tasks = dag.tasks.values() if dag else []
        depths[name] = (dag is not None) + max((depths.get(task.component, 0) for task in tasks), default=0)
        num_tasks[name] = 1 + sum(
            (len(task.iterator.items or ()) if task.iterator else 1) * num_tasks.get(task.component, 0)
            for task in tasks
        )
    deepest, most = max(depths.values()), max(num_tasks.values())
    reasons = [f"root: {deepest} levels of nested dags; at most {_MAX_DEPTH} can run locally"] * (deepest > _MAX_DEPTH)
    return reasons + [f"root: expands to {most} tasks; at most {_MAX_TASKS} can run locally"] * (most > _MAX_TASKS)


def _dag_refusals(component: Component, dag: Dag, pipeline: Pipeline) -> list[str]:
    """Refuse references inside a dag that lead nowhere, circular dependencies, and conditions that are not CEL."""
    reasons: list[str] = []
    known = {name: pipeline.components.get(task.component) for name, task in dag.tasks.items()}
    for task in dag.tasks.values():
        missing = [name for name in task.dependencies if name not in dag.tasks]
        reasons += [f"{task.path}: depends on {quote(name, 120)}, which is not a task of this dag" for name in missing]
        reasons += _source_refusals(task, component, known) + _expression_refusals(task)
        reasons += _loop_refusals(task, known[task.name])
        if (used := known[task.name]) is not None:
            reasons += signatures.of_task(task, used)
    outputs = [("Parameters", dag.parameters), ("Artifacts", dag.artifacts)]
    for kind, group in outputs:
        for name, sources in group.items():
            for source in sources:
                producer = known.get(source.producer)
                declared = producer and (
                    producer.output_parameters if kind == "Parameters" else producer.output_artifacts
                )
                if not declared or source.key not in declared:
                    path = f"{component.path}.dag.outputs.{kind.lower()}.{name}"
                    reasons.append(f"{path}: {quote(source.producer, 120)} has no output {quote(source.key, 120)}")
    return reasons


def _source_refusals(task: TaskSpec, parent: Component, known: dict[str, Component | None]) -> list[str]:
    """Refuse inputs of a task whose source does not exist."""
    reasons = []
    groups: list[tuple[JsonObject, str, str]] = [
        (task.parameters, "input_parameters", "output_parameters"),
        (task.artifacts, "input_artifacts", "output_artifacts"),
    ]
    for sources, inputs, outputs in groups:
        for name, source in sources.items():
            path = f"{task.path}.inputs.{name}"
            if source.input is not None and source.input not in getattr(parent, inputs):
                reasons.append(f"{path}: the surrounding dag has no input {quote(source.input, 120)}")
            producer = known.get(source.producer or "")
            if source.producer is not None and producer and source.output not in getattr(producer, outputs):
                reasons.append(f"{path}: {quote(source.producer, 120)} has no output {quote(source.output, 120)}")
    return reasons


def _expression_refusals(task: TaskSpec) -> list[str]:
    """Refuse conditions, selectors and placeholders of a task that cannot be evaluated."""
    reasons = []
    try:
        if task.condition:
            conditions.check_condition(task.condition, set(task.parameters))
    except conditions.ConditionError as error:
        reasons.append(f"{task.path}.triggerPolicy.condition: {quote(task.condition, 300)} {error}")
    for name, source in task.parameters.items():
        path = f"{task.path}.inputs.parameters.{name}"
        try:
            if source.selector:
                conditions.check_selector(source.selector)
        except conditions.ConditionError as error:
            reasons.append(f"{path}.parameterExpressionSelector: {quote(source.selector, 300)} {error}")
        reasons += [f"{path}: the placeholder {text} is unknown" for text in _placeholders_in(source.constant)]
    return reasons


def _loop_refusals(task: TaskSpec, component: Component | None) -> list[str]:
    """Refuse loops over inputs that do not exist."""
    loop = task.iterator
    if loop is None or component is None:
        return []
    reasons = []
    if loop.item_input not in {**component.input_parameters, **component.input_artifacts}:
        reasons.append(
            f"{task.path}: the loop's item {quote(loop.item_input, 120)} is not an input of {component.name!r}"
        )
    missing_parameter = loop.input_parameter is not None and loop.input_parameter not in task.parameters
    missing_artifact = loop.input_artifact is not None and loop.input_artifact not in task.artifacts
    if missing_parameter or missing_artifact:
        reasons.append(
            f"{task.path}: the loop's items {quote(loop.input_parameter or loop.input_artifact, 120)} are not an input"
        )
    return reasons


def _step_refusals(component: Component, pipeline: Pipeline) -> list[str]:
    """Refuse steps that no executor can run."""
    executor = pipeline.executors.get(component.executor)
    if component.given is not None:
        return []
    if executor is None:
        if component.executor in pipeline.unsupported:
            return []
        return [f"{component.path}: there is no executor {quote(component.executor, 120)}"]
    runner = find_executor(executor)
    if runner is None:
        return [f"{executor.path}: no executor can run this locally"]
    reasons = runner.refusals(executor) + signatures.of_step(component, executor)
    names = [name for name, each in component.input_parameters.items() if each.type is ParameterType.TASK_CONFIG]
    reasons += [f"{component.path}: the input {name!r} is a TaskConfig, a Kubernetes feature" for name in names]
    texts: list[Any] = [each.default for each in component.input_parameters.values()]
    if isinstance(executor, Container):
        texts += [*executor.command, *executor.args, *executor.env.values()]
        reasons += [f"{executor.path}.command: {reason}" for reason in arguments.check(executor.command)]
        reasons += [f"{executor.path}.args: {reason}" for reason in arguments.check(executor.args)]
    else:
        texts += [executor.uri, executor.metadata]
    unknown = [name for text in texts for name in _placeholders_in(text)]
    return reasons + [f"{executor.path}: the placeholder {name} is unknown" for name in unknown]


def _placeholders_in(value: Any) -> list[str]:
    """Return the unknown placeholders in a value of any shape."""
    texts = [each for each in parts(value, with_keys=True) if isinstance(each, str)]
    return [name for text in texts for name in unknown_placeholders(text)]
