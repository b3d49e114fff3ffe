"""Reads a decoded compiled file into `spec.Pipeline`: the pipeline and its components."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localvertex._base.compiled.fields import Fields, task_name
from localvertex._base.compiled.job import JobSettings, read_job
from localvertex._base.compiled.parameters import ParameterSpec, ParameterType, restore_integers
from localvertex._base.compiled.spec import ArtifactSpec, Component, Container, Dag, Importer, OutputSource, Pipeline
from localvertex._base.compiled.tasks import read_task
from localvertex._base.compiled.value import read_value
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.reading import display
from localvertex._base.userinput.spelling import quote

_SCHEMA_VERSIONS = ("2.0.0", "2.1.0")
_INPUTS, _OUTPUTS, _DAG_OUTPUTS = "ComponentInputsSpec", "ComponentOutputsSpec", "DagOutputsSpec"
_PARAMETER, _ARTIFACT = f"{_DAG_OUTPUTS}.ParameterSelectorSpec", f"{_DAG_OUTPUTS}.ArtifactSelectorSpec"
_OLDER_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE", "STRING": "STRING"}
"""Types of parameters as kfp 1.8 writes them."""

_CONTAINER = "PipelineDeploymentConfig.PipelineContainerSpec"


def read_pipeline(document: Mapping[str, Any], platforms: JsonObject | None = None) -> Pipeline:
    """Return the pipeline of a PipelineSpec, or of a PipelineJob that wraps one.

    Nothing is refused here: what is wrong is noted in `problems`, with its path, and read as absent. Programs that
    cannot work with a part refuse the file for the first problem; others use what is there.

    Args:
        document: The decoded file.
        platforms: Its second document, for the settings of single platforms.
    """
    fields = _spec_fields(document)
    info, unsupported = fields.object("pipelineInfo", "PipelineInfo"), dict[str, str]()
    pipeline = Pipeline(
        schema_version=_schema_version(fields),
        name=info.required("name", str),
        description=info.take("description", str, ""),
        default_root=fields.take("defaultPipelineRoot", str, ""),
        components={key: _read_component(key, inner) for key, inner in fields.objects("components", "ComponentSpec")},
        root=_read_component("root", fields.required_object("root", "ComponentSpec")),
        executors=_read_executors(fields, unsupported),
        job=read_job(document, fields.problems) if "pipelineSpec" in document else JobSettings(),
        platforms=platforms or {},
        unsupported=unsupported,
        problems=fields.problems,
    )
    fields.finish()
    complete({**pipeline.components, "": pipeline.root}, fields.problems)
    return pipeline


def _spec_fields(document: Mapping[str, Any]) -> Fields:
    problems: list[str] = []
    if "pipelineSpec" in document:
        # A PipelineJob, as the service returns it, wraps the spec.
        document = Fields(document, "PipelineJob", problems).required("pipelineSpec", dict)
    if "root" not in document or "deploymentSpec" not in document:
        found = ", ".join(map(display, sorted(map(str, document))[:6]))[:200] or "no fields"
        problems.append(f"this is not a compiled pipeline: expected 'root' and 'deploymentSpec', found {found}")
    return Fields(document, "PipelineSpec", problems)


def _schema_version(fields: Fields) -> str:
    version = fields.take("schemaVersion", str, "")
    if version not in _SCHEMA_VERSIONS:
        fields.problems.append(f"schemaVersion is {quote(version)}; expected {' or '.join(_SCHEMA_VERSIONS)}")
    return version


def _read_executors(fields: Fields, unsupported: dict[str, str]) -> JsonObject:
    deployment, executors = fields.object("deploymentSpec", "PipelineDeploymentConfig"), JsonObject()
    for key, inner in deployment.objects("executors", "PipelineDeploymentConfig.ExecutorSpec"):
        found = _read_executor(inner)
        if isinstance(found, str):
            unsupported[key] = found
        else:
            executors[key] = found
    return executors


def _read_component(name: str, fields: Fields) -> Component:
    input_parameters, input_artifacts = _read_declared(fields.object("inputDefinitions", _INPUTS), _INPUTS)
    output_parameters, output_artifacts = _read_declared(fields.object("outputDefinitions", _OUTPUTS), _OUTPUTS)
    component = Component(
        name=name,
        input_parameters=input_parameters,
        input_artifacts=input_artifacts,
        output_parameters=output_parameters,
        output_artifacts=output_artifacts,
        dag=_read_dag(fields.object("dag", "DagSpec")) if fields.has("dag") else None,
        executor=fields.take("executorLabel", str, ""),
        path=fields.path,
    )
    if bool(component.executor) == (component.dag is not None):
        fields.note("expected exactly one of 'dag' and 'executorLabel'")
    return component


def _read_declared(fields: Fields, message: str) -> tuple[dict[str, ParameterSpec], dict[str, ArtifactSpec]]:
    """Return the parameters and the artifacts among the inputs or outputs of a component."""
    parameters = fields.objects("parameters", f"{message}.ParameterSpec")
    artifacts = fields.objects("artifacts", f"{message}.ArtifactSpec")
    return (
        {key: _read_parameter(inner) for key, inner in parameters},
        {key: _read_artifact(inner) for key, inner in artifacts},
    )


def _read_parameter(fields: Fields) -> ParameterSpec:
    return ParameterSpec(
        type=_parameter_type(fields),
        default=restore_integers(fields.any("defaultValue")),
        is_optional=fields.take("isOptional", bool, False),
        description=fields.take("description", str, ""),
        literals=tuple(restore_integers(fields.take("literals", list, []))),
    )


def _parameter_type(fields: Fields) -> ParameterType:
    name = fields.take("parameterType", str, "") or _OLDER_TYPES.get(fields.take("type", str, ""), "")
    if name not in ParameterType.__members__:
        fields.note(f"{quote(name)} is not one of {', '.join(ParameterType)}", "parameterType")
        return ParameterType.STRING
    return ParameterType(name)


def _read_artifact(fields: Fields) -> ArtifactSpec:
    title, version = _read_schema(fields.object("artifactType", "ArtifactTypeSchema"))
    return ArtifactSpec(
        schema_title=title,
        schema_version=version,
        is_list=fields.take("isArtifactList", bool, False),
        is_optional=fields.take("isOptional", bool, False),
        metadata=restore_integers(fields.take("metadata", dict, {})),
    )


def _read_dag(fields: Fields) -> Dag:
    outputs = fields.object("outputs", _DAG_OUTPUTS)
    parameters = outputs.objects("parameters", f"{_DAG_OUTPUTS}.DagOutputParameterSpec")
    artifacts = outputs.objects("artifacts", f"{_DAG_OUTPUTS}.DagOutputArtifactSpec")
    return Dag(
        tasks={name: read_task(name, inner) for name, inner in fields.objects("tasks", "PipelineTaskSpec", task_name)},
        parameters={key: _read_parameter_output(inner) for key, inner in parameters},
        artifacts={
            key: _read_selectors(inner.list_of_objects("artifactSelectors", _ARTIFACT), "Artifact")
            for key, inner in artifacts
        },
    )


def _read_parameter_output(fields: Fields) -> tuple[OutputSource, ...]:
    """Return the sources of a DagOutputParameterSpec: one selector, or the several of a OneOf."""
    if fields.has("valueFromOneof"):
        one_of = fields.object("valueFromOneof", f"{_DAG_OUTPUTS}.ParameterSelectorsSpec")
        return _read_selectors(one_of.list_of_objects("parameterSelectors", _PARAMETER), "Parameter")
    return _read_selectors([fields.required_object("valueFromParameter", _PARAMETER)], "Parameter")


def _read_selectors(selectors: list[Fields], kind: str) -> tuple[OutputSource, ...]:
    return tuple(
        OutputSource(
            producer=task_name(each.required("producerSubtask", str)), key=each.required(f"output{kind}Key", str)
        )
        for each in selectors
    )


def complete(components: Mapping[str, Component], problems: list[str]) -> None:
    """Fill in what kfp 1.8 left out.

    An output without its key is the producer's only one. A number for a STRING, as 1 for a `bool`, is its text.

    Args:
        components: All components by name, the root among them.
        problems: Receives the sources for which the output is not clear.
    """
    nothing = Component(name="")
    for component in components.values():
        tasks = component.dag.tasks if component.dag else {}
        for task in tasks.values():
            declared = components.get(task.component, nothing).input_parameters
            for name, source in task.parameters.items():
                if source.producer is not None and not source.output:
                    producer = tasks.get(source.producer)
                    found = components.get(producer.component, nothing) if producer else nothing
                    outputs = [*found.output_parameters]
                    task.parameters[name] = replace(source, output=outputs[0] if outputs else "")
                    if len(outputs) != 1:
                        problems.append(
                            f"{source.path}.taskOutputParameter: the field 'outputParameterKey' is missing or empty, "
                            f"and {quote(source.producer, 120)} has {len(outputs)} outputs"
                        )
                elif source.is_old and isinstance(source.constant, int | float) and name in declared:
                    if declared[name].type is ParameterType.STRING:
                        task.parameters[name] = replace(source, constant=json.dumps(source.constant))


def _read_schema(fields: Fields) -> tuple[str, str]:
    """Return title and version of an ArtifactTypeSchema."""
    title, version = fields.take("schemaTitle", str, ""), fields.take("schemaVersion", str, "")
    # A schema at an address or in the file is refused by its own field.
    if not (title or fields.has("schemaUri") or fields.has("instanceSchema")):
        fields.note("the field 'schemaTitle' is missing or empty")
    return title, version


def _read_executor(fields: Fields) -> Container | Importer | str:
    """Return the executor of an ExecutorSpec; of a kind that never runs locally, the line that says so."""
    if fields.has("container"):
        return _read_container(fields.object("container", _CONTAINER))
    if fields.has("importer"):
        return _read_importer(fields.object("importer", "PipelineDeploymentConfig.ImporterSpec"))
    kinds = [kind for kind in ("resolver", "customJob") if fields.any(kind) is not None]
    return f"{fields.path}: executors of the kind {kinds[0] if kinds else 'none'!r} do not run locally"


def _read_container(fields: Fields) -> Container:
    env: dict[str, str] = {}
    for variable in fields.list_of_objects("env", f"{_CONTAINER}.EnvVar"):
        env[variable.required("name", str)] = variable.take("value", str, "")
    return Container(
        image=fields.take("image", str, ""),
        command=fields.strings("command"),
        args=fields.strings("args"),
        env=env,
        resources=_read_resources(fields),
        has_lifecycle=bool(fields.take("lifecycle", dict, {})),
        path=fields.path,
    )


def _read_resources(fields: Fields) -> JsonObject:
    """Return a ResourceSpec unchanged; unknown fields are noted."""
    resources = fields.take("resources", dict, {})
    path = fields.at("resources")
    message, accelerator = f"{_CONTAINER}.ResourceSpec", resources.get("accelerator") or {}
    Fields(resources, message, fields.problems, path).finish()
    Fields(accelerator, f"{message}.AcceleratorConfig", fields.problems, f"{path}.accelerator").finish()
    return resources


def _read_importer(fields: Fields) -> Importer:
    source = fields.object("artifactUri", "ValueOrRuntimeParameter")
    uri: str | None = None
    if source.take("runtimeParameter", str, "") == "":
        # kfp 1.8 writes a Value message.
        is_old = source.has("constantValue")
        uri = str(read_value(source.object("constantValue", "Value"))) if is_old else source.required("constant", str)
    title, version = _read_schema(fields.object("typeSchema", "ArtifactTypeSchema"))
    return Importer(
        uri=uri,
        schema_title=title,
        schema_version=version,
        metadata=restore_integers(fields.take("metadata", dict, {})),
        download_to_workspace=fields.take("downloadToWorkspace", bool, False),
        path=fields.path,
    )
