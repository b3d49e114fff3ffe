"""The steps of a compiled pipeline with the values that reach them, through nested dags."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelerators.job.run_time import AtRunTime
from accelerators.pipeline.step import Step, Value, mapping
from userinput.errors import UserError

MAX_TASKS = 20_000
"""A pipeline whose nested dags unfold to more tasks is refused: it was made to be slow."""
_MAX_DEPTH = 40


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """One dag: its tasks and what came into it."""

    tasks: dict[str, Any]
    inputs: dict[str, Value]
    where: str
    names: tuple[str, ...] = ()
    """Components on the way from the root, so that one that holds itself is seen."""


@dataclass(kw_only=True)
class Graph:
    """A compiled pipeline.

    Attributes:
        spec: The parsed pipeline spec.
        parameters: Values of root parameters that replace the defaults, as a PipelineJob carries them.
    """

    spec: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    _visited: int = 0

    def steps(self) -> Iterator[Step]:
        """Yield every step that runs a container, nested dags included.

        Raises:
            UserError: If the dags unfold to an unreasonable number of tasks or into themselves.
        """
        root = mapping(self.spec.get("root"))
        scope = _Scope(tasks=mapping(mapping(root.get("dag")).get("tasks")), inputs=self._roots(root), where="root.dag")
        yield from self._walk(scope)

    def _roots(self, root: dict[str, Any]) -> dict[str, Value]:
        inputs: dict[str, Value] = {}
        for name, definition in mapping(mapping(root.get("inputDefinitions")).get("parameters")).items():
            where = f"root.inputDefinitions.parameters.{name}"
            if name in self.parameters:
                inputs[name] = Value(value=self.parameters[name], where=f"runtimeConfig.parameterValues.{name}")
            elif "defaultValue" in mapping(definition):
                value = _as_declared(definition["defaultValue"], definition)
                inputs[name] = Value(value=value, where=f"{where}.defaultValue", default_of=(name,))
            else:
                unknown = AtRunTime(origin=f"parameter {name!r}, which has no default")
                inputs[name] = Value(value=unknown, where=where)
        return inputs

    def _walk(self, scope: _Scope) -> Iterator[Step]:
        components, executors = mapping(self.spec.get("components")), self._executors()
        for name, task in scope.tasks.items():
            self._count()
            reference = mapping(mapping(task).get("componentRef")).get("name")
            component = mapping(components.get(reference)) if isinstance(reference, str) else {}
            where = f"{scope.where}.tasks.{name}"
            inputs, given = self._inputs(mapping(task), component, str(reference), scope, where)
            if "dag" in component:
                yield from self._nested(component, str(reference), inputs, scope)
            label = component.get("executorLabel")
            container = mapping(mapping(executors.get(label)).get("container")) if isinstance(label, str) else {}
            if container:
                yield Step(
                    name=str(name),
                    where=where,
                    container=container,
                    container_where=f"deploymentSpec.executors.{label}.container",
                    inputs=inputs,
                    given=frozenset(given),
                    cached=mapping(mapping(task).get("cachingOptions")).get("enableCache") is True,
                )

    def _nested(self, component: dict[str, Any], name: str, inputs: dict[str, Value], scope: _Scope) -> Iterator[Step]:
        if name in scope.names or len(scope.names) >= _MAX_DEPTH:
            raise UserError(f"component {name!r} contains itself or is nested too deeply; that is no pipeline")
        tasks = mapping(mapping(component.get("dag")).get("tasks"))
        inner = _Scope(tasks=tasks, inputs=inputs, where=f"components.{name}.dag", names=(*scope.names, name))
        yield from self._walk(inner)

    def _count(self) -> None:
        self._visited += 1
        if self._visited > MAX_TASKS:
            raise UserError(f"the nested dags unfold to more than {MAX_TASKS} tasks; that is no pipeline")

    def _executors(self) -> dict[str, Any]:
        return mapping(mapping(self.spec.get("deploymentSpec")).get("executors"))

    def _inputs(
        self, task: dict[str, Any], component: dict[str, Any], name: str, scope: _Scope, where: str
    ) -> tuple[dict[str, Value], set[str]]:
        definitions = mapping(mapping(component.get("inputDefinitions")).get("parameters"))
        base = f"components.{name}.inputDefinitions.parameters"
        inputs = {
            key: Value(value=mapping(definition)["defaultValue"], where=f"{base}.{key}.defaultValue")
            for key, definition in definitions.items()
            if "defaultValue" in mapping(definition)
        }
        given = mapping(mapping(task.get("inputs")).get("parameters"))
        for key, source in given.items():
            value = self._resolve(mapping(source), scope, f"{where}.inputs.parameters.{key}")
            inputs[key] = value
        return inputs, set(given)

    def _resolve(self, source: dict[str, Any], scope: _Scope, where: str, depth: int = 0) -> Value:
        if "runtimeValue" in source:
            return _constant(mapping(source["runtimeValue"]), scope, f"{where}.runtimeValue")
        if source.get("parameterExpressionSelector"):
            return Value(value=AtRunTime(origin="a part of another value"), where=where)
        name = source.get("componentInputParameter")
        if isinstance(name, str):
            unknown = Value(value=AtRunTime(origin=f"input {name!r}"), where=where)
            return scope.inputs.get(name, unknown)
        output = mapping(source.get("taskOutputParameter"))
        return self._output(output, scope, where, depth) if output else Value(value=_LATER, where=where)

    def _output(self, output: dict[str, Any], scope: _Scope, where: str, depth: int) -> Value:
        producer, key = str(output.get("producerTask")), str(output.get("outputParameterKey"))
        task = mapping(scope.tasks.get(producer))
        reference = mapping(task.get("componentRef")).get("name")
        component = mapping(mapping(self.spec.get("components")).get(reference)) if isinstance(reference, str) else {}
        outputs = mapping(component.get("outputDefinitions"))
        path = f"{scope.where}.tasks.{producer}"
        inputs: dict[str, Value] = {}
        if depth == 0:
            given = mapping(mapping(task.get("inputs")).get("parameters"))
            for name, source in given.items():
                inputs[name] = self._resolve(mapping(source), scope, f"{path}.inputs.parameters.{name}", depth + 1)
        return Value(
            value=AtRunTime(origin=f"output {key!r} of step {producer!r}", producer=path, step_inputs=inputs),
            where=where,
            is_artifact=key in mapping(outputs.get("artifacts")) and key not in mapping(outputs.get("parameters")),
        )


_LATER = AtRunTime(origin="the running pipeline")


def _constant(runtime_value: dict[str, Any], scope: _Scope, where: str) -> Value:
    if "constant" in runtime_value:
        return Value(value=runtime_value["constant"], where=f"{where}.constant")
    # Schema 2.0.0 (kfp 1.8) wraps constants by type.
    wrapped = mapping(runtime_value.get("constantValue"))
    for kind, value in wrapped.items():
        plain = int(value) if kind == "intValue" and str(value).lstrip("-").isdecimal() else value
        return Value(value=plain, where=f"{where}.constantValue.{kind}")
    name = runtime_value.get("runtimeParameter")
    return scope.inputs.get(str(name), Value(value=_LATER, where=where))


def _as_declared(value: Any, definition: Mapping[str, Any]) -> Any:
    """Turn the 1.0 that compiled files hold for a NUMBER_INTEGER back into 1."""
    is_integer = definition.get("parameterType") == "NUMBER_INTEGER"
    return int(value) if is_integer and isinstance(value, float) and value.is_integer() else value
