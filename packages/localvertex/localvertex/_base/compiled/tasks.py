"""Tasks of the compiled file: where inputs come from, when the task runs, retries and loops."""

import math
from typing import Any

from localvertex._base.compiled.fields import Fields, task_name
from localvertex._base.compiled.parameters import restore_integers
from localvertex._base.compiled.spec import ArtifactSource, Iterator, ParameterSource, RetryPolicy, TaskSpec
from localvertex._base.compiled.value import read_value
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import quote

_TASK = "PipelineTaskSpec"
_PARAMETER, _ARTIFACT = "TaskInputsSpec.InputParameterSpec", "TaskInputsSpec.InputArtifactSpec"
_AFTER_FAILURE = "ALL_UPSTREAM_TASKS_COMPLETED"
_TRIGGERS = ("", "TRIGGER_STRATEGY_UNSPECIFIED", "ALL_UPSTREAM_TASKS_SUCCEEDED", _AFTER_FAILURE)
_MAX_SECONDS = 315_576_000_000
"""google.protobuf.Duration: 10,000 years."""


def read_task(name: str, fields: Fields) -> TaskSpec:
    """Return the task of a PipelineTaskSpec."""
    inputs, caching = (
        fields.object("inputs", "TaskInputsSpec"),
        fields.object("cachingOptions", f"{_TASK}.CachingOptions"),
    )
    trigger = fields.object("triggerPolicy", f"{_TASK}.TriggerPolicy")
    parameters = {key: _read_parameter_source(inner) for key, inner in inputs.objects("parameters", _PARAMETER)}
    artifacts = {key: _read_artifact_source(inner) for key, inner in inputs.objects("artifacts", _ARTIFACT)}
    producers = [source.producer or source.final_status_of for source in parameters.values()]
    producers += [source.producer for source in artifacts.values()]
    trigger_rule = trigger.take("strategy", str, "")
    if trigger_rule not in _TRIGGERS:
        trigger.note(f"{quote(trigger_rule)} is unknown", "strategy")
    return TaskSpec(
        name=name,
        component=fields.object("componentRef", "ComponentRef").required("name", str),
        parameters=parameters,
        artifacts=artifacts,
        dependencies=tuple(
            dict.fromkeys([*map(task_name, fields.strings("dependentTasks")), *filter(None, producers)])
        ),
        condition=trigger.take("condition", str, ""),
        runs_after_failure=trigger_rule == _AFTER_FAILURE,
        enable_cache=caching.take("enableCache", bool, False),
        cache_key=caching.take("cacheKey", str, ""),
        retry=_read_retry(fields.object("retryPolicy", f"{_TASK}.RetryPolicy")),
        iterator=_read_iterator(fields),
        display_name=fields.object("taskInfo", "PipelineTaskInfo").take("name", str, "") or name,
        path=fields.path,
    )


def _read_retry(fields: Fields) -> RetryPolicy:
    """Return a RetryPolicy; kfp leaves out what is not set."""
    default = RetryPolicy()
    factor = fields.any("backoffFactor")
    policy = RetryPolicy(
        max_retries=fields.take("maxRetryCount", int, 0),
        backoff_seconds=_duration_seconds(fields, "backoffDuration", default.backoff_seconds),
        backoff_factor=float(factor) if isinstance(factor, int | float) else default.backoff_factor,
        max_backoff_seconds=_duration_seconds(fields, "backoffMaxDuration", default.max_backoff_seconds),
    )
    if policy.max_retries < 0 or not 0 <= policy.backoff_factor < math.inf:
        fields.note("expected a maxRetryCount of 0 or more and a finite backoffFactor")
        return default
    return policy


def _duration_seconds(fields: Fields, name: str, default: float) -> float:
    """Return a protobuf duration such as `3.5s` in seconds."""
    text = fields.take(name, str, "")
    if not text:
        return default
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not text.endswith("s") or not 0 <= seconds <= _MAX_SECONDS:
        fields.note(f"{quote(text)} is not a duration; expected seconds with an s, for example '60s'")
        return default
    return seconds


def _read_iterator(fields: Fields) -> Iterator | None:
    """Return the ParallelFor of a task, None for an ordinary one."""
    limit = fields.object("iteratorPolicy", f"{_TASK}.IteratorPolicy").take("parallelismLimit", int, 0)
    for kind in ("Parameter", "Artifact"):
        if fields.has(field := f"{kind.lower()}Iterator"):
            iterator = fields.object(field, f"{kind}IteratorSpec")
            items = iterator.object("items", f"{kind}IteratorSpec.ItemsSpec")
            return Iterator(
                item_input=iterator.required("itemInput", str),
                items=_read_items(items),
                input_parameter=items.take("inputParameter", str, "") or None,
                input_artifact=items.take("inputArtifact", str, "") or None,
                max_parallel=limit,
            )
    return None


def _read_items(fields: Fields) -> tuple[Any, ...] | None:
    """Return the literal items of a ParallelFor, a JSON list in a string; None where there are none."""
    raw = fields.take("raw", str, "")
    if not raw:
        return None
    try:
        items = parse_json(raw, fields.at("raw"))
    except UserError as error:
        fields.problems.append(str(error))
        return None
    if not isinstance(items, list):
        fields.note("expected a JSON list", "raw")
        return None
    return tuple(restore_integers(items))


def _read_parameter_source(fields: Fields) -> ParameterSource:
    selector = fields.take("parameterExpressionSelector", str, "") or None
    if fields.has("runtimeValue"):
        return _read_runtime_value(fields.object("runtimeValue", "ValueOrRuntimeParameter"), selector)
    if fields.has("componentInputParameter"):
        name = fields.take("componentInputParameter", str, "")
        return ParameterSource(input=name, selector=selector, path=fields.path)
    if fields.has("taskFinalStatus"):
        status = fields.object("taskFinalStatus", f"{_PARAMETER}.TaskFinalStatus")
        return ParameterSource(final_status_of=task_name(status.required("producerTask", str)), path=fields.path)
    output = fields.required_object("taskOutputParameter", f"{_PARAMETER}.TaskOutputParameterSpec")
    return ParameterSource(
        producer=task_name(output.required("producerTask", str)),
        # Empty: the only one, see `older`.
        output=output.take("outputParameterKey", str, ""),
        selector=selector,
        path=fields.path,
    )


def _read_runtime_value(fields: Fields, selector: str | None) -> ParameterSource:
    """Return a constant, or in files of kfp 1.8 a `constantValue` or the name of an input, `runtimeParameter`."""
    is_null, constant, path = fields.is_null("constant"), restore_integers(fields.any("constant")), fields.path
    if constant is not None or is_null:
        path = fields.at("constant")
    if is_old := fields.has("constantValue"):
        value = fields.object("constantValue", "Value")
        constant, path = read_value(value), value.path
    name = fields.take("runtimeParameter", str, "") or None
    return ParameterSource(constant=constant, is_null=is_null, is_old=is_old, input=name, selector=selector, path=path)


def _read_artifact_source(fields: Fields) -> ArtifactSource:
    if fields.has("componentInputArtifact"):
        return ArtifactSource(input=fields.take("componentInputArtifact", str, ""))
    output = fields.required_object("taskOutputArtifact", f"{_ARTIFACT}.TaskOutputArtifactSpec")
    return ArtifactSource(
        producer=task_name(output.required("producerTask", str)), output=output.required("outputArtifactKey", str)
    )
