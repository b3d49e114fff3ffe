"""From a decoded compiled file to `spec.Pipeline`; unknown fields and wrong types are refused with their place."""

from typing import Any

from localvertex import spec
from localvertex.errors import UserError
from localvertex.reader import Fields
from localvertex.values import restore_integers

SCHEMA_VERSIONS = ("2.0.0", "2.1.0")


def read_pipeline(document: dict[str, Any], platforms: dict[str, Any]) -> spec.Pipeline:
    """The pipeline of a PipelineSpec, or of a PipelineJob that wraps one.

    Raises:
        UserError: the document is not a pipeline spec, or not one of a version that is understood.
    """
    if "pipelineSpec" in document:
        document = Fields(document["pipelineSpec"], "pipelineSpec") and document["pipelineSpec"]
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


def read_parameter(value: Any, place: str) -> spec.ParameterSpec:
    """A ParameterSpec of an input or an output."""
    fields = Fields(value, place)
    parameter = spec.ParameterSpec(
        type=spec.parameter_type(fields),
        default=restore_integers(fields.any("defaultValue")),
        is_optional=fields.take("isOptional", bool, False),
        description=fields.take("description", str, ""),
        literals=tuple(restore_integers(fields.take("literals", list, []))),
    )
    fields.done()
    return parameter


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


def read_schema(fields: Fields) -> tuple[str, str]:
    """Title and version of an ArtifactTypeSchema."""
    title = fields.required("schemaTitle", str)
    version = fields.take("schemaVersion", str, "")
    fields.done()
    return title, version


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


def read_task(name: str, value: Any, place: str) -> spec.TaskSpec:
    """A PipelineTaskSpec."""
    fields = Fields(value, place)
    inputs, info, caching = fields.object("inputs"), fields.object("taskInfo"), fields.object("cachingOptions")
    reference, trigger = fields.object("componentRef"), fields.object("triggerPolicy")
    parameters = {key: read_parameter_source(item, at) for key, item, at in inputs.items("parameters")}
    artifacts = {key: read_artifact_source(item, at) for key, item, at in inputs.items("artifacts")}
    producers = [source.producer or source.final_status_of for source in parameters.values()]
    producers += [source.producer for source in artifacts.values()]
    trigger_rule = trigger.take("strategy", str, "")
    if trigger_rule not in ("", "TRIGGER_STRATEGY_UNSPECIFIED", "ALL_UPSTREAM_TASKS_SUCCEEDED", AFTER_FAILURE):
        raise UserError(f"{place}.triggerPolicy.strategy: {trigger_rule!r} is not known")
    task = spec.TaskSpec(
        name=name,
        component=reference.required("name", str),
        parameters=parameters,
        artifacts=artifacts,
        dependencies=tuple(dict.fromkeys([*fields.strings("dependentTasks"), *filter(None, producers)])),
        condition=trigger.take("condition", str, ""),
        runs_after_failure=trigger_rule == AFTER_FAILURE,
        enable_cache=caching.take("enableCache", bool, False),
        cache_key=caching.take("cacheKey", str, ""),
        retry=read_retry(fields.object("retryPolicy")),
        iterator=read_iterator(fields),
        display_name=info.take("name", str, "") or name,
        place=place,
    )
    for group in (inputs, info, caching, reference, trigger, fields):
        group.done()
    return task


AFTER_FAILURE = "ALL_UPSTREAM_TASKS_COMPLETED"


def read_retry(fields: Fields) -> spec.RetryPolicy:
    """A RetryPolicy; kfp leaves out what is not set."""
    default = spec.RetryPolicy()
    factor = fields.any("backoffFactor")
    policy = spec.RetryPolicy(
        max_retries=fields.take("maxRetryCount", int, 0),
        backoff_seconds=spec.duration_seconds(fields.take("backoffDuration", str, "0s"), fields.place),
        backoff_factor=float(factor) if isinstance(factor, int | float) else default.backoff_factor,
        max_backoff_seconds=spec.duration_seconds(fields.take("backoffMaxDuration", str, "3600s"), fields.place),
    )
    fields.done()
    return policy


def read_iterator(fields: Fields) -> spec.Iterator | None:
    """The ParallelFor of a task, None for an ordinary one."""
    policy = fields.object("iteratorPolicy")
    limit = policy.take("parallelismLimit", int, 0)
    policy.done()
    for kind in ("parameterIterator", "artifactIterator"):
        if fields.has(kind):
            iterator = fields.object(kind)
            items = iterator.object("items")
            raw = items.take("raw", str, "")
            result = spec.Iterator(
                item_input=iterator.required("itemInput", str),
                items=read_items(raw, items.place) if raw else None,
                input_parameter=items.take("inputParameter", str, "") or None,
                input_artifact=items.take("inputArtifact", str, "") or None,
                max_parallel=limit,
            )
            items.done()
            iterator.done()
            return result
    return None


def read_items(raw: str, place: str) -> tuple[Any, ...]:
    """The literal items of a ParallelFor, a JSON list in a string."""
    from localvertex.load import parse_json

    items = parse_json(raw, f"{place}.raw")
    if not isinstance(items, list):
        raise UserError(f"{place}.raw: expected a JSON list")
    return tuple(restore_integers(items))


def read_parameter_source(value: Any, place: str) -> spec.ParameterSource:
    """An InputParameterSpec."""
    fields = Fields(value, place)
    selector = fields.take("parameterExpressionSelector", str, "") or None
    if fields.has("runtimeValue"):
        runtime = fields.object("runtimeValue")
        constant = read_constant(runtime)
        source = spec.ParameterSource(constant=constant, selector=selector)
    elif fields.has("componentInputParameter"):
        source = spec.ParameterSource(input=fields.take("componentInputParameter", str, ""), selector=selector)
    elif fields.has("taskFinalStatus"):
        status = fields.object("taskFinalStatus")
        source = spec.ParameterSource(final_status_of=status.required("producerTask", str))
        status.done()
    else:
        output = Fields(fields.required("taskOutputParameter", dict), f"{place}.taskOutputParameter")
        producer, key = output.required("producerTask", str), output.required("outputParameterKey", str)
        source = spec.ParameterSource(producer=producer, output=key, selector=selector)
        output.done()
    fields.done()
    return source


def read_constant(fields: Fields) -> Any:
    """A ValueOrRuntimeParameter that is a constant."""
    constant = restore_integers(fields.any("constant"))
    fields.done()
    return constant


def read_artifact_source(value: Any, place: str) -> spec.ArtifactSource:
    """An InputArtifactSpec."""
    fields = Fields(value, place)
    if fields.has("componentInputArtifact"):
        source = spec.ArtifactSource(input=fields.take("componentInputArtifact", str, ""))
    else:
        output = Fields(fields.required("taskOutputArtifact", dict), f"{place}.taskOutputArtifact")
        producer, key = output.required("producerTask", str), output.required("outputArtifactKey", str)
        source = spec.ArtifactSource(producer=producer, output=key)
        output.done()
    fields.done()
    return source


def read_executor(value: Any, place: str, unsupported: list[str]) -> spec.Container | spec.Importer | None:
    """An ExecutorSpec; kinds that never run locally are added to `unsupported`."""
    fields = Fields(value, place)
    executor: spec.Container | spec.Importer | None = None
    if fields.has("container"):
        executor = read_container(fields.object("container"))
    elif fields.has("importer"):
        executor = read_importer(fields.object("importer"))
    else:
        kinds = [kind for kind in ("resolver", "customJob") if fields.any(kind) is not None]
        unsupported.append(f"{place}: executors of the kind {kinds[0] if kinds else 'none'!r} do not run locally")
    fields.done()
    return executor


def read_container(fields: Fields) -> spec.Container:
    """A PipelineContainerSpec."""
    env: dict[str, str] = {}
    for index, value in enumerate(fields.take("env", list, [])):
        variable = Fields(value, f"{fields.place}.env[{index}]")
        env[variable.required("name", str)] = variable.take("value", str, "")
        variable.done()
    container = spec.Container(
        image=fields.take("image", str, ""),
        command=fields.strings("command"),
        args=fields.strings("args"),
        env=env,
        resources=fields.take("resources", dict, {}),
        has_lifecycle=bool(fields.take("lifecycle", dict, {})),
        place=fields.place,
    )
    fields.done()
    return container


def read_importer(fields: Fields) -> spec.Importer:
    """An ImporterSpec."""
    source = fields.object("artifactUri")
    is_parameter = source.take("runtimeParameter", str, "") != ""
    uri = None if is_parameter else source.required("constant", str)
    source.done()
    title, version = read_schema(fields.object("typeSchema"))
    importer = spec.Importer(
        uri=uri,
        schema_title=title,
        schema_version=version,
        metadata=restore_integers(fields.take("metadata", dict, {})),
        download_to_workspace=fields.take("downloadToWorkspace", bool, False),
        place=fields.place,
    )
    fields.take("reimport", bool, False)
    fields.done()
    return importer
