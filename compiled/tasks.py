"""Tasks of the compiled file: where inputs come from, when the task runs, retries and loops."""

import math
from typing import Any

from compiled import spec
from compiled.fields import Fields
from userinput.errors import UserError
from userinput.parameters import restore_integers
from userinput.reading import parse_json

AFTER_FAILURE = "ALL_UPSTREAM_TASKS_COMPLETED"


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


def read_retry(fields: Fields) -> spec.RetryPolicy:
    """A RetryPolicy; kfp leaves out what is not set."""
    default = spec.RetryPolicy()
    factor = fields.any("backoffFactor")
    policy = spec.RetryPolicy(
        max_retries=fields.take("maxRetryCount", int, 0),
        backoff_seconds=duration_seconds(fields.take("backoffDuration", str, "0s"), fields.place),
        backoff_factor=float(factor) if isinstance(factor, int | float) else default.backoff_factor,
        max_backoff_seconds=duration_seconds(fields.take("backoffMaxDuration", str, "3600s"), fields.place),
    )
    fields.done()
    if policy.max_retries < 0 or not 0 <= policy.backoff_factor < math.inf:
        raise UserError(f"{fields.place}: maxRetryCount: 0 or more expected, and a finite backoffFactor")
    return policy


def duration_seconds(text: str, place: str) -> float:
    """A protobuf duration such as `3.5s` in seconds.

    Raises:
        UserError: the text is not a duration.
    """
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not text.endswith("s") or not 0 <= seconds <= 315_576_000_000:
        raise UserError(f"{place}: {text!r} is not a duration; seconds with an s, for example '60s'")
    return seconds


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
