"""The steps of a compiled pipeline with the values that reach them, through nested dags."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from localvertex._base.compiled.payload import INPUT_PARAMETER, expand
from localvertex._base.compiled.spec import Component, Container, Dag, ParameterSource, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.machines.job.values import RuntimeValue

_MAX_TASKS = 20_000
"""A pipeline whose nested dags unfold to more tasks is refused, because its check would take too long."""
_MAX_DEPTH = 40
_MAX_ITEMS = 100
"""Different items of a loop that are checked."""
_PART = re.compile(r'parseJson\(string_value\)\["([^"]+)"\]')
_MODULE, _LAUNCHERS, _LAUNCHER = re.compile(r"[\w.]+"), "google_cloud_pipeline_components.container.", "launcher"


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value that reaches an input of a step."""

    value: Any
    """A plain value or a RuntimeValue."""
    path: str
    """Its path in the file."""
    default_of: tuple[str, ...] = ()
    """The pipeline parameter whose default it is."""
    is_artifact: bool = False
    """Whether it is an artifact instead of a parameter."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One task that runs a container."""

    name: str
    path: str
    """Path of the task, e.g. "root.dag.tasks.train"."""
    container: Container
    inputs: dict[str, Value]
    """Inputs of the task, with the component's own defaults for the rest."""
    given: frozenset[str]
    """Names of the inputs that the task itself sets."""
    is_cached: bool

    @property
    def is_google_cloud(self) -> bool:
        """Whether it is a Google Cloud component, whose container only starts a job elsewhere."""
        names = (name for word in self.container.command for name in _MODULE.findall(word))
        return any(_LAUNCHER in name.partition(_LAUNCHERS)[2][1:] for name in names)

    def fill(self, text: Any) -> Any:
        """Return the value of a field that may be the placeholder of an input."""
        if not isinstance(text, str) or "{{$" not in text:
            return text
        whole = INPUT_PARAMETER.fullmatch(text)
        held = self.inputs.get(whole[1]) if whole else None
        return held.value if held is not None else RuntimeValue(origin="the running pipeline")

    def argument(self, name: str) -> str:
        """Return the word after a flag in the container's arguments, e.g. of "--type"; empty without the flag."""
        present = {name for name, held in self.inputs.items() if held.value is not None}
        try:
            words = expand(self.container.args, present)
        except UserError:
            words = list(self.container.args)
        return next((after for flag, after in pairwise(words) if flag == name), "")


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """One dag: its tasks and what came into it."""

    dag: Dag
    inputs: dict[str, Value]
    names: tuple[str, ...] = ()
    """Components on the way from the root, to find one that contains itself."""


@dataclass(kw_only=True)
class Graph:
    """A compiled pipeline.

    Attributes:
        pipeline: The pipeline as far as it could be read.
        parameters: Values of root parameters that replace the defaults, as a PipelineJob has them.
        unfolds_loops: Whether the steps of a loop are yielded for every item that is known.
    """

    pipeline: Pipeline
    parameters: JsonObject = field(default_factory=dict)
    unfolds_loops: bool = True
    loops: list[tuple[TaskSpec, int]] = field(default_factory=list)
    """The loops whose items are known, with their number; filled by `steps`."""
    _visited: int = 0

    def steps(self) -> Iterator[Step]:
        """Yield every step that runs a container, in nested dags too.

        Raises:
            UserError: The dags unfold to an unreasonable number of tasks, or one contains itself.
        """
        yield from self._walk(_Scope(dag=self.pipeline.root.dag or Dag(tasks={}), inputs=self._root_inputs()))

    def _root_inputs(self) -> dict[str, Value]:
        inputs: dict[str, Value] = {}
        for name, declared in self.pipeline.root.input_parameters.items():
            path = f"root.inputDefinitions.parameters.{name}"
            if name in self.parameters:
                inputs[name] = Value(value=self.parameters[name], path=f"runtimeConfig.parameterValues.{name}")
            elif declared.default is not None:
                inputs[name] = Value(value=declared.default, path=f"{path}.defaultValue", default_of=(name,))
            else:
                unknown = RuntimeValue(origin=f"parameter {name!r}, which has no default")
                inputs[name] = Value(value=unknown, path=path)
        return inputs

    def _walk(self, scope: _Scope) -> Iterator[Step]:
        for task in scope.dag.tasks.values():
            component = self._component(task)
            inputs = self._inputs(task, component, scope)
            items = _loop_items(task, inputs)
            if isinstance(items, list):
                self.loops.append((task, len(items)))
            for item in _iterations(task, inputs, items if self.unfolds_loops else None):
                yield from self._steps_of(task, component, inputs | item, scope)

    def _steps_of(
        self, task: TaskSpec, component: Component, inputs: dict[str, Value], scope: _Scope
    ) -> Iterator[Step]:
        self._visited += 1
        if self._visited > _MAX_TASKS:
            raise UserError(f"the nested dags unfold to more than {_MAX_TASKS} tasks; no such pipeline can run")
        name = component.name
        if component.dag is not None:
            if name in scope.names or len(scope.names) >= _MAX_DEPTH:
                raise UserError(f"component {name!r} contains itself or is nested too deeply; no such pipeline can run")
            yield from self._walk(_Scope(dag=component.dag, inputs=inputs, names=(*scope.names, name)))
        executor = self.pipeline.executors.get(component.executor)
        if isinstance(executor, Container):
            yield Step(
                name=task.display_name,
                path=task.path,
                container=executor,
                inputs=inputs,
                given=frozenset(task.parameters),
                is_cached=task.enable_cache,
            )

    def _component(self, task: TaskSpec) -> Component:
        return self.pipeline.components.get(task.component) or Component(name=task.component)

    def _inputs(self, task: TaskSpec, component: Component, scope: _Scope) -> dict[str, Value]:
        base = f"{component.path}.inputDefinitions.parameters"
        defaults = {
            name: Value(value=declared.default, path=f"{base}.{name}.defaultValue")
            for name, declared in component.input_parameters.items()
            if declared.default is not None
        }
        return defaults | {name: self._resolve(source, scope) for name, source in task.parameters.items()}

    def _resolve(self, source: ParameterSource, scope: _Scope, depth: int = 0) -> Value:
        if source.selector:
            return _part(self._resolve(replace(source, selector=None), scope, depth), source.selector)
        if source.constant is not None or source.is_null:
            return Value(value=source.constant, path=source.path)
        if source.input is not None:
            unknown = Value(value=RuntimeValue(origin=f"input {source.input!r}"), path=source.path)
            return scope.inputs.get(source.input, unknown)
        if source.producer:
            return self._output(source.producer, source, scope, depth)
        return Value(value=RuntimeValue(origin="the running pipeline"), path=source.path)

    def _output(self, producer: str, source: ParameterSource, scope: _Scope, depth: int) -> Value:
        task = scope.dag.tasks.get(producer)
        component = self._component(task) if task else Component(name="")
        inputs: dict[str, Value] = {}
        if task and depth == 0:
            inputs = {name: self._resolve(inner, scope, depth + 1) for name, inner in task.parameters.items()}
        origin = f"output {source.output!r} of step {producer!r}"
        return Value(
            value=RuntimeValue(origin=origin, producer=task.path if task else "", step_inputs=inputs),
            path=source.path,
            is_artifact=source.output in component.output_artifacts
            and source.output not in component.output_parameters,
        )


def _loop_items(task: TaskSpec, inputs: dict[str, Value]) -> Any:
    """Return the items of a ParallelFor: a list if they are known; None for an ordinary task."""
    if task.iterator is None:
        return None
    if held := inputs.get(task.iterator.input_parameter or ""):
        return as_json(held.value)
    return None if task.iterator.items is None else list(task.iterator.items)


def _iterations(task: TaskSpec, inputs: dict[str, Value], items: Any) -> list[dict[str, Value]]:
    """Return the additional input of each iteration of a ParallelFor; of an ordinary task one without any."""
    loop = task.iterator
    if loop is None:
        return [{}]
    held = inputs.get(loop.input_parameter or "")
    path = held.path if held else f"{task.path}.parameterIterator.items.raw"
    default_of = held.default_of if held else ()
    unknown = Value(value=RuntimeValue(origin=f"the items of loop {task.name!r}"), path=path)
    if not isinstance(items, list):
        return [{loop.item_input: unknown}]
    different = {json.dumps(item, sort_keys=True, default=repr): index for index, item in reversed([*enumerate(items)])}
    known = [
        Value(value=items[index], path=f"{path}[{index}]", default_of=default_of)
        for index in sorted(different.values())[:_MAX_ITEMS]
    ]
    return [{loop.item_input: value} for value in [*known, *[unknown] * (len(different) > _MAX_ITEMS)]]


def _part(held: Value, selector: str) -> Value:
    """Return the part of a value that a selector of the compiler names."""
    match = _PART.fullmatch(selector)
    value = as_json(held.value)
    if match is None or not isinstance(value, dict):
        origin = f"a part of {held.value.origin}" if isinstance(held.value, RuntimeValue) else "a part of another value"
        return replace(held, value=RuntimeValue(origin=origin))
    return replace(held, value=value.get(match[1]), path=f"{held.path}.{match[1]}")


def as_json(value: Any) -> Any:
    """Return a list or mapping that was given as JSON text, and any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
    except (ValueError, RecursionError):
        return value
