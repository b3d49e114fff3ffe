"""From a decoded compiled file to `spec.Pipeline`; unknown fields and wrong types are refused with their place."""

from typing import Any

from compiled import spec
from compiled.executors import read_executor, read_schema
from compiled.fields import Fields
from compiled.tasks import read_task
from userinput.errors import UserError
from userinput.parameters import ParameterSpec, ParameterType, restore_integers

SCHEMA_VERSIONS = ("2.0.0", "2.1.0")


def read_pipeline(document: dict[str, Any], platforms: dict[str, Any]) -> spec.Pipeline:
    """The pipeline of a PipelineSpec, or of a PipelineJob that wraps one.

    Raises:
        UserError: the document is not a pipeline spec, or not one of a version that is understood.
    """
    if "pipelineSpec" in document:
        # A PipelineJob, as the service returns it, wraps the spec.
        document = Fields(document, "").required("pipelineSpec", dict)
    if "root" not in document or "deploymentSpec" not in document:
        found = ", ".join(sorted(map(str, document))[:6]) or "no field at all"
        raise UserError(f"this is not a compiled pipeline: 'root' and 'deploymentSpec' expected, found {found}")
    fields = Fields(document, "")
    version = fields.take("schemaVersion", str, "")
    if version not in SCHEMA_VERSIONS:
        raise UserError(f"schemaVersion {version!r} is not known, expected {' or '.join(SCHEMA_VERSIONS)}")
    fields.take("sdkVersion", str, "")
    fields.take("defaultPipelineRoot", str, "")
    info = fields.object("pipelineInfo")
    name = info.required("name", str)
    info.take("displayName", str, "")
    description = info.take("description", str, "")
    info.done()
    components = {key: read_component(key, value, place) for key, value, place in fields.items("components")}
    root = read_component("root", fields.required("root", dict), "root")
    deployment = fields.object("deploymentSpec")
    unsupported: list[str] = []
    executors = {key: read_executor(value, place, unsupported) for key, value, place in deployment.items("executors")}
    deployment.done()
    fields.done()
    return spec.Pipeline(
        name=name,
        description=description,
        root=root,
        components=components,
        executors={key: executor for key, executor in executors.items() if executor is not None},
        platforms=platforms,
        unsupported=tuple(unsupported),
    )


def read_component(name: str, value: Any, place: str) -> spec.Component:
    """A ComponentSpec."""
    fields = Fields(value, place)
    inputs, outputs = fields.object("inputDefinitions"), fields.object("outputDefinitions")
    has_dag = fields.has("dag")
    dag = read_dag(fields.object("dag")) if has_dag else None
    component = spec.Component(
        name=name,
        input_parameters={key: read_parameter(item, at) for key, item, at in inputs.items("parameters")},
        input_artifacts={key: read_artifact(item, at) for key, item, at in inputs.items("artifacts")},
        output_parameters={key: read_parameter(item, at) for key, item, at in outputs.items("parameters")},
        output_artifacts={key: read_artifact(item, at) for key, item, at in outputs.items("artifacts")},
        dag=dag,
        executor=fields.take("executorLabel", str, ""),
        place=place,
    )
    for group in (inputs, outputs, fields):
        group.done()
    if bool(component.executor) == has_dag:
        raise UserError(f"{place}: exactly one of 'dag' and 'executorLabel' expected")
    return component


def read_parameter(value: Any, place: str) -> ParameterSpec:
    """A ParameterSpec of an input or an output."""
    fields = Fields(value, place)
    parameter = ParameterSpec(
        type=parameter_type(fields),
        default=restore_integers(fields.any("defaultValue")),
        is_optional=fields.take("isOptional", bool, False),
        description=fields.take("description", str, ""),
        literals=tuple(restore_integers(fields.take("literals", list, []))),
    )
    fields.done()
    return parameter


def parameter_type(fields: Fields) -> ParameterType:
    """The declared type, `parameterType` or the older `type`."""
    older = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE", "STRING": "STRING"}
    name = fields.take("parameterType", str, "") or older.get(fields.take("type", str, ""), "")
    if name not in ParameterType.__members__:
        raise UserError(f"{fields.place}.parameterType: {name!r} is not one of {', '.join(ParameterType)}")
    return ParameterType(name)


def read_artifact(value: Any, place: str) -> spec.ArtifactSpec:
    """An ArtifactSpec of an input or an output."""
    fields = Fields(value, place)
    title, version = read_schema(fields.object("artifactType"))
    artifact = spec.ArtifactSpec(
        schema_title=title,
        schema_version=version,
        is_list=fields.take("isArtifactList", bool, False),
        is_optional=fields.take("isOptional", bool, False),
    )
    fields.take("description", str, "")
    fields.take("metadata", dict, {})
    fields.done()
    return artifact


def read_dag(fields: Fields) -> spec.Dag:
    """A DagSpec."""
    tasks = {name: read_task(name, value, place) for name, value, place in fields.items("tasks")}
    outputs = fields.object("outputs")
    parameters = {key: read_parameter_output(value, at) for key, value, at in outputs.items("parameters")}
    artifacts = {key: read_artifact_output(value, at) for key, value, at in outputs.items("artifacts")}
    outputs.done()
    fields.done()
    return spec.Dag(tasks=tasks, parameters=parameters, artifacts=artifacts)


def read_parameter_output(value: Any, place: str) -> tuple[spec.OutputSource, ...]:
    """A DagOutputParameterSpec: one selector, or those of a OneOf."""
    fields = Fields(value, place)
    if fields.has("valueFromOneof"):
        one_of = fields.object("valueFromOneof")
        selectors = one_of.take("parameterSelectors", list, [])
        one_of.done()
    else:
        selectors = [fields.required("valueFromParameter", dict)]
    fields.done()
    return tuple(read_selector(selector, place, "outputParameterKey") for selector in selectors)


def read_artifact_output(value: Any, place: str) -> tuple[spec.OutputSource, ...]:
    """A DagOutputArtifactSpec."""
    fields = Fields(value, place)
    selectors = fields.take("artifactSelectors", list, [])
    fields.done()
    return tuple(read_selector(selector, place, "outputArtifactKey") for selector in selectors)


def read_selector(value: Any, place: str, key: str) -> spec.OutputSource:
    """One selector of a dag output."""
    fields = Fields(value, place)
    source = spec.OutputSource(producer=fields.required("producerSubtask", str), key=fields.required(key, str))
    fields.done()
    return source
