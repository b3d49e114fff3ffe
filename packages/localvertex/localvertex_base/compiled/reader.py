"""From a decoded compiled file to `spec.Pipeline`: the pipeline and its components."""

from collections.abc import Mapping
from typing import Any

from localvertex_base.compiled.executors import read_executor, read_schema
from localvertex_base.compiled.fields import Fields
from localvertex_base.compiled.job import JobSettings, read_job
from localvertex_base.compiled.older import complete
from localvertex_base.compiled.spec import ArtifactSpec, Component, Dag, OutputSource, Pipeline
from localvertex_base.compiled.tasks import read_task
from localvertex_base.userinput.parameters import ParameterSpec, ParameterType, restore_integers
from localvertex_base.userinput.reading import display
from localvertex_base.userinput.spelling import quote

_SCHEMA_VERSIONS = ("2.0.0", "2.1.0")
_INPUTS, _OUTPUTS = "ComponentInputsSpec", "ComponentOutputsSpec"
_OLDER_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE", "STRING": "STRING"}
"""Types of parameters as kfp 1.8 writes them."""


def read_pipeline(document: Mapping[str, Any], platforms: dict[str, Any] | None = None) -> Pipeline:
    """Return the pipeline of a PipelineSpec, or of a PipelineJob that wraps one.

    Nothing is refused here: what is wrong is noted in `problems`, with its path, and read as absent. Programs that
    cannot work with a part refuse the file for the first problem; others use what is there.

    Args:
        document: The decoded file.
        platforms: Its second document, for the settings of single platforms.
    """
    fields = _spec_fields(document)
    info, unsupported = fields.object("pipelineInfo"), list[str]()
    pipeline = Pipeline(
        schema_version=_schema_version(fields),
        name=info.required("name", str),
        description=info.take("description", str, ""),
        default_root=fields.take("defaultPipelineRoot", str, ""),
        components={key: _read_component(key, inner) for key, inner in fields.objects("components")},
        root=_read_component("root", fields.required_object("root")),
        executors=_read_executors(fields.object("deploymentSpec"), unsupported),
        job=read_job(document, fields.problems) if "pipelineSpec" in document else JobSettings(),
        platforms=platforms or {},
        unsupported=tuple(unsupported),
        problems=fields.problems,
    )
    info.take("displayName", str, "")
    fields.take("sdkVersion", str, "")
    info.finish("PipelineInfo")
    fields.finish("PipelineSpec")
    complete({**pipeline.components, "": pipeline.root}, fields.problems)
    return pipeline


def _spec_fields(document: Mapping[str, Any]) -> Fields:
    problems: list[str] = []
    if "pipelineSpec" in document:
        # A PipelineJob, as the service returns it, wraps the spec.
        document = Fields(document, "", problems).required("pipelineSpec", dict)
    if "root" not in document or "deploymentSpec" not in document:
        found = ", ".join(map(display, sorted(map(str, document))[:6]))[:200] or "no fields"
        problems.append(f"this is not a compiled pipeline: expected 'root' and 'deploymentSpec', found {found}")
    return Fields(document, "", problems)


def _schema_version(fields: Fields) -> str:
    version = fields.take("schemaVersion", str, "")
    if version not in _SCHEMA_VERSIONS:
        fields.problems.append(f"schemaVersion is {quote(version)}; expected {' or '.join(_SCHEMA_VERSIONS)}")
    return version


def _read_executors(fields: Fields, unsupported: list[str]) -> dict[str, Any]:
    executors = {key: read_executor(inner, unsupported) for key, inner in fields.objects("executors")}
    fields.finish("PipelineDeploymentConfig")
    return {key: executor for key, executor in executors.items() if executor is not None}


def _read_component(name: str, fields: Fields) -> Component:
    inputs, outputs = fields.object("inputDefinitions"), fields.object("outputDefinitions")
    has_dag = fields.has("dag")
    dag = _read_dag(fields.object("dag")) if has_dag else None
    component = Component(
        name=name,
        input_parameters={key: _read_parameter(inner, _INPUTS) for key, inner in inputs.objects("parameters")},
        input_artifacts={key: _read_artifact(inner, _INPUTS) for key, inner in inputs.objects("artifacts")},
        output_parameters={key: _read_parameter(inner, _OUTPUTS) for key, inner in outputs.objects("parameters")},
        output_artifacts={key: _read_artifact(inner, _OUTPUTS) for key, inner in outputs.objects("artifacts")},
        dag=dag,
        executor=fields.take("executorLabel", str, ""),
        path=fields.path,
    )
    inputs.finish(_INPUTS)
    outputs.finish(_OUTPUTS)
    fields.finish("ComponentSpec")
    if bool(component.executor) == has_dag:
        fields.note("expected exactly one of 'dag' and 'executorLabel'")
    return component


def _read_parameter(fields: Fields, message: str) -> ParameterSpec:
    parameter = ParameterSpec(
        type=_parameter_type(fields),
        default=restore_integers(fields.any("defaultValue")),
        is_optional=fields.take("isOptional", bool, False),
        description=fields.take("description", str, ""),
        literals=tuple(restore_integers(fields.take("literals", list, []))),
    )
    fields.finish(f"{message}.ParameterSpec")
    return parameter


def _parameter_type(fields: Fields) -> ParameterType:
    name = fields.take("parameterType", str, "") or _OLDER_TYPES.get(fields.take("type", str, ""), "")
    if name not in ParameterType.__members__:
        fields.note(f"{quote(name)} is not one of {', '.join(ParameterType)}", "parameterType")
        return ParameterType.STRING
    return ParameterType(name)


def _read_artifact(fields: Fields, message: str) -> ArtifactSpec:
    title, version = read_schema(fields.object("artifactType"))
    artifact = ArtifactSpec(
        schema_title=title,
        schema_version=version,
        is_list=fields.take("isArtifactList", bool, False),
        is_optional=fields.take("isOptional", bool, False),
        metadata=restore_integers(fields.take("metadata", dict, {})),
    )
    fields.take("description", str, "")
    fields.finish(f"{message}.ArtifactSpec")
    return artifact


def _read_dag(fields: Fields) -> Dag:
    tasks = {name: read_task(name, inner) for name, inner in fields.objects("tasks")}
    outputs = fields.object("outputs")
    parameters = {key: _read_parameter_output(inner) for key, inner in outputs.objects("parameters")}
    artifacts = {key: _read_artifact_output(inner) for key, inner in outputs.objects("artifacts")}
    outputs.finish("DagOutputsSpec")
    fields.finish("DagSpec")
    return Dag(tasks=tasks, parameters=parameters, artifacts=artifacts)


def _read_parameter_output(fields: Fields) -> tuple[OutputSource, ...]:
    """Return the sources of a DagOutputParameterSpec: one selector, or the several of a OneOf."""
    if fields.has("valueFromOneof"):
        one_of = fields.object("valueFromOneof")
        selectors = one_of.list_of_objects("parameterSelectors")
        one_of.finish("DagOutputsSpec.ParameterSelectorsSpec")
    else:
        selectors = [fields.required_object("valueFromParameter")]
    fields.finish("DagOutputsSpec.DagOutputParameterSpec")
    return tuple(_read_selector(selector, "Parameter") for selector in selectors)


def _read_artifact_output(fields: Fields) -> tuple[OutputSource, ...]:
    selectors = fields.list_of_objects("artifactSelectors")
    fields.finish("DagOutputsSpec.DagOutputArtifactSpec")
    return tuple(_read_selector(selector, "Artifact") for selector in selectors)


def _read_selector(fields: Fields, kind: str) -> OutputSource:
    producer, key = fields.required("producerSubtask", str), fields.required(f"output{kind}Key", str)
    source = OutputSource(producer=producer, key=key)
    fields.finish(f"DagOutputsSpec.{kind}SelectorSpec")
    return source
