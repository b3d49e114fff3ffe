"""The values given for a step in `[step.NAME]` of localvertex.toml: outputs in place of a run, or addresses.

A given task has no implementation any more, only its signature, so that no other check looks at it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from localvertex._base.compiled.parameters import ParameterSpec, ParameterType, convert
from localvertex._base.compiled.spec import ArtifactSpec, Component, Container, Dag, Pipeline, TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean, quote
from localvertex.store.executor_files import RESOURCES, UPLOAD
from localvertex.store.task import title_of
from localvertex.values.configuration import Configuration, key, path_in, toml

_MAX_TASKS, _MAX_DEPTH = 10_000, 50
"""A pipeline with more is refused."""

_EXAMPLES: dict[ParameterType, Any] = {
    ParameterType.NUMBER_INTEGER: 1,
    ParameterType.NUMBER_DOUBLE: 0.5,
    ParameterType.BOOLEAN: True,
    ParameterType.LIST: [],
    ParameterType.STRUCT: {},
}

_OWN_CLIENT = re.compile(r"(?:^|\n|\\n)[ \t]*(?:import|from)[ \t]+(tensorflow|keras)\b")
"""Imports with a client of gs:// in C++, in code or in its JSON."""

_ROWS = (".csv", ".jsonl", ".ndjson", ".json", ".parquet")

_MODEL = "google.VertexModel"
"""The type of a model of the registry; a file alone cannot be deployed."""


@dataclass(frozen=True, kw_only=True)
class NamedTask:
    """A task of the graph; all iterations of a loop are one."""

    path: str
    """Names from the root down, e.g. "for-loop-1/train"."""
    title: str
    spec: TaskSpec
    component: Component
    used: frozenset[str]
    """The outputs that another task, or the surrounding dag, reads."""

    @property
    def names(self) -> list[str]:
        """The names that a user may give it by, besides its path."""
        return [self.title, self.spec.name, *filter(None, [self.spec.display_name])]

    @property
    def outputs(self) -> dict[str, ParameterSpec | ArtifactSpec]:
        """The declared outputs."""
        return {**self.component.output_parameters, **self.component.output_artifacts}

    @property
    def required(self) -> JsonObject:
        """Examples of the outputs without which it cannot be given; launchers need not write resources."""
        return {
            name: example(each) for name, each in self.outputs.items() if not each.is_optional and name != RESOURCES
        }

    @property
    def proposed(self) -> JsonObject:
        """Examples of the outputs that are required or read."""
        others = {name: example(each) for name, each in self.outputs.items() if name in self.used - {*self.required}}
        resources = {RESOURCES: json.dumps({"resources": []})} if RESOURCES in others else {}
        return self.required | others | resources


def named_tasks(pipeline: Pipeline) -> Iterator[NamedTask]:
    """Yield the tasks of a pipeline, parents first; in one that is refused for its size, only the first ones."""

    def of_dag(component: Component, names: tuple[str, ...]) -> Iterator[NamedTask]:
        dag = component.dag if component.dag and len(names) < _MAX_DEPTH else Dag(tasks={})
        read: set[tuple[str | None, str | None]] = set()
        for task in dag.tasks.values():
            read |= {(each.producer, each.output) for each in task.parameters.values()}
            read |= {(each.producer, each.output) for each in task.artifacts.values()}
        for sources in (*dag.parameters.values(), *dag.artifacts.values()):
            read |= {(each.producer, each.key) for each in sources}
        for spec in dag.tasks.values():
            used, inner = pipeline.components.get(spec.component), (*names, spec.name)
            if used is not None:
                title = title_of(inner, spec.display_name)
                outputs = frozenset(name for producer, name in read if producer == spec.name and name)
                yield NamedTask(path="/".join(inner), title=title, spec=spec, component=used, used=outputs)
                yield from of_dag(used, inner)

    return islice(of_dag(pipeline.root, ()), _MAX_TASKS)


def example(declared: ParameterSpec | ArtifactSpec) -> Any:
    """Return a value of an output's type."""
    if isinstance(declared, ParameterSpec):
        return next(iter(declared.literals), _EXAMPLES.get(declared.type, "text"))
    model = {"artifact": "path/to/model", "image": "SERVING_IMAGE"}
    return model if declared.schema_title == _MODEL else "path/to/file"


def apply(
    pipeline: Pipeline, configuration: Configuration, *, allows_unknown: bool, allows_gone: bool = False
) -> Pipeline:
    """Return the pipeline with the given outputs in place of the implementations of their tasks, and with addresses.

    Args:
        pipeline: The pipeline.
        configuration: Configuration with the given outputs.
        allows_unknown: Whether it may have names of other pipelines.
        allows_gone: Whether its files need not exist, as those of which a resumed run has copies.

    Raises:
        UserError: A task or an output does not exist, an output is missing, or a value is of another type.
    """
    if not (configuration.step or configuration.pipeline):
        return pipeline
    every = {each.path: each for each in named_tasks(pipeline)}
    names = dict.fromkeys([*every, *(name for each in every.values() for name in each.names)])
    found: dict[str, JsonObject] = {}
    problems = []
    for name, table in configuration.tables_of(pipeline.name, "step", names, ignores_unknown=allows_unknown).items():
        try:
            task = _find(name, every)
            if task is None:
                known = ", ".join([*every][:20]) or "none"
                raise UserError(f"the pipeline has no such task{did_you_mean(name, names)}; it has {known}")
            if task.path in found:
                raise UserError(f"the outputs of {task.path} are given twice")
            if "outputs" in table or not table:
                given = _check(task, table.get("outputs", {}), configuration.folder, allows_gone)
                found[task.path] = {"dag": None, "executor": "", "given": given}
            else:
                _check_rows(table.get("bigquery", {}), allows_gone)
                kept = _keeps_addresses(task, table.get("addresses", "folder"), pipeline)
                found[task.path] = {"keeps_addresses": kept, "bigquery": table.get("bigquery", {})}
        except UserError as error:
            problems.append(f"[step.{key(name)}]: {error}")
    if problems:
        raise UserError("; ".join(problems))
    return _replace(pipeline, found) if found else pipeline


def given_paths(pipeline: Pipeline) -> list[str]:
    """Return the paths of the tasks whose outputs are given."""
    return [each.path for each in named_tasks(pipeline) if each.component.given is not None]


def _find(name: str, every: Mapping[str, NamedTask]) -> NamedTask | None:
    if name in every:
        return every[name]
    alike = [each for each in every.values() if name in each.names]
    if len(alike) > 1:
        raise UserError(f"several tasks have this name; expected one of {', '.join(each.path for each in alike)}")
    return alike[0] if alike else None


def _keeps_addresses(task: NamedTask, addresses: str, pipeline: Pipeline) -> bool:
    """Return whether a step gets gs:// as it is.

    Raises:
        UserError: It is not a step, or its code would ask Google.
    """
    executor = pipeline.executor_of(task.spec)
    if not isinstance(executor, Container):
        raise UserError("addresses and bigquery are for a step with a program; expected outputs, or another step")
    if addresses == "gs" and (library := asks_google("\n".join(executor.command))):
        text = f'addresses = "gs": its code uses {library}, whose own client of gs:// asks Google, not the folder'
        raise UserError(f'{text}; expected "folder", or nothing')
    return addresses == "gs"


def _check_rows(files: Mapping[str, str], allows_gone: bool) -> None:
    """Refuse files of rows that are not there or have another form.

    Raises:
        UserError: There is one.
    """
    for name, file in files.items():
        if Path(file).suffix.lower() not in _ROWS or not (allows_gone or Path(file).is_file()):
            raise UserError(f"bigquery: {file!r} for {quote(name)}; expected a file that is here, {', '.join(_ROWS)}")


def asks_google(code: str) -> str:
    """Return the library in a step's code that reads gs:// from Google in any case; empty for none."""
    found = _OWN_CLIENT.search(code)
    return found[1] if found else ""


def _check(task: NamedTask, outputs: Mapping[str, Any], folder: Path, allows_gone: bool) -> JsonObject:
    """Return the outputs of a task as its program would write them, with files of the user as custom paths.

    Raises:
        UserError: They are not what it declares.
    """
    if task.spec.iterator is not None:
        raise UserError("a loop cannot be given; give the outputs of the steps in it")
    declared = task.outputs
    for name in outputs:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise UserError(f"it has no output {quote(name)}{did_you_mean(name, declared)}; its outputs: {known}")
    if missing := [name for name in task.required if name not in outputs]:
        lines = ", ".join(f"{key(name)} = {toml(task.required[name])}" for name in missing)
        raise UserError(f"outputs lack {', '.join(missing)}; add {lines}")
    parameters, artifacts = JsonObject(), JsonObject()
    for name, value in outputs.items():
        each = declared[name]
        try:
            json.dumps(value, allow_nan=False)
            if isinstance(each, ParameterSpec):
                parameters[name] = convert(value, each.type)
            else:
                is_model = each.schema_title == _MODEL
                artifacts[name] = {"artifacts": [_artifact(value, folder, allows_gone, is_model=is_model)]}
        except (TypeError, ValueError, UserError) as error:
            kind = each.type if isinstance(each, ParameterSpec) else each.schema_title
            raise UserError(
                f"output {name}: expected {kind}, {error}; for example {key(name)} = {toml(example(each))}"
            ) from None
    return {"parameterValues": parameters, "artifacts": artifacts}


def _artifact(value: Any, folder: Path, allows_gone: bool, *, is_model: bool) -> JsonObject:
    """Return an artifact that is given as a path, an address or a table, a model also by its files and its image.

    Raises:
        ValueError: It is something else, or there is no such file.
    """
    table = {"uri" if "://" in value else "path": value} if isinstance(value, str) else value
    types = {"path": str, "uri": str, "metadata": dict}
    if is_model and isinstance(value, dict) and "artifact" in value:
        table, types = value, {"artifact": str, "image": str, "command": list}
    if value == "":
        raise ValueError("found an empty text")
    is_table = isinstance(table, dict) and all(type(each) is types.get(name) for name, each in table.items())
    if not is_table or not table or {"path", "uri"} <= {*table} or "://" not in table.get("uri", "://"):
        form = "{path = ... or uri = gs://..., metadata = {...}}"
        raise ValueError(f"found {quote(value)}, which is neither a path nor {form}")
    file = path_in(folder, table.get("path") or table.get("artifact", ""))
    if not {"path", "artifact"} & {*table}:
        return {**table}
    if not (allows_gone or file.is_file() or file.is_dir()):
        raise ValueError(f"there is no file or folder {str(file)!r}")
    if "artifact" in table:
        names = {"image_uri": "image", "command": "command"}
        container = {field: table[name] for field, name in names.items() if table.get(name)}
        return {UPLOAD: {"artifact_uri": str(file.absolute()), "container_spec": container}}
    return {"custom_path": str(file.absolute()), "metadata": table.get("metadata", {})}


def _replace(pipeline: Pipeline, found: Mapping[str, JsonObject]) -> Pipeline:
    """Replace the components of these tasks, and of the dags that contain them, only at their place in the graph."""
    components = dict(pipeline.components)

    def rebuilt(component: Component, dag: Dag, prefix: str) -> Component:
        tasks = dict(dag.tasks)
        for name, spec in dag.tasks.items():
            used, path = pipeline.components.get(spec.component), f"{prefix}{name}"
            if used is not None and path in found:
                new = replace(used, name=f"{used.name} for {path}", **found[path])
            elif used is not None and used.dag and any(each.startswith(f"{path}/") for each in found):
                new = replace(rebuilt(used, used.dag, f"{path}/"), name=f"{used.name} in {path}")
            else:
                continue
            components[new.name], tasks[name] = new, replace(spec, component=new.name)
        return replace(component, dag=replace(dag, tasks=tasks))

    root = rebuilt(pipeline.root, pipeline.root.dag or Dag(tasks={}), "")
    return replace(pipeline, root=root, components=components)
