"""The message around a compiled pipeline, a PipelineJob: settings for the run of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.compiled.fields import Fields
from localvertex._base.compiled.value import read_value
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import quote

_CLOUD_ONLY = ("reservedIpRanges", "pscInterfaceConfig")
"""Fields for Google's network and machines."""

_RUNTIME = "PipelineJob.RuntimeConfig"
_FAIL_FAST = "PIPELINE_FAILURE_POLICY_FAIL_FAST"
_POLICIES = ("", "PIPELINE_FAILURE_POLICY_UNSPECIFIED", "PIPELINE_FAILURE_POLICY_FAIL_SLOW", _FAIL_FAST)


@dataclass(frozen=True, kw_only=True, eq=False)
class JobSettings:
    """Settings of a PipelineJob for its run; all unset for a file with the pipeline alone."""

    parameters: JsonObject = field(default_factory=dict)
    """Values of the pipeline's parameters."""
    input_artifacts: tuple[str, ...] = ()
    """Names of the inputs that are given as ids of Vertex ML Metadata."""
    output_directory: str = ""
    """gs:// prefix of the outputs."""
    fail_fast: bool = False
    placeholders: dict[str, str] = field(default_factory=dict)
    """Values of job-wide placeholders, e.g. `pipeline_service_account`."""
    without_effect: tuple[str, ...] = ()
    """Settings that only Google's machines can follow, one sentence each."""


def read_job(document: Mapping[str, Any], problems: list[str]) -> JobSettings:
    """Return the settings of a PipelineJob; note the fields that are unknown or cannot be followed.

    Args:
        document: The decoded file, with `pipelineSpec`.
        problems: Receives what is wrong, one line each.
    """
    fields = Fields(document, "PipelineJob", problems)
    fields.any("pipelineSpec")
    ignored = [f"{name} has no effect here" for name in _CLOUD_ONLY if fields.any(name)]
    config = fields.object("runtimeConfig", _RUNTIME)
    placeholders = {
        "pipeline_service_account": fields.take("serviceAccount", str, ""),
        "pipeline_network": fields.take("network", str, ""),
        "pipeline_encryption_key_name": fields.object("encryptionSpec", "EncryptionSpec").take("kmsKeyName", str, ""),
        "pipeline_persistent_resource_id": _persistent_resource(config, ignored),
    }
    job = JobSettings(
        parameters=_parameters(config),
        input_artifacts=tuple(config.take("inputArtifacts", dict, {})),
        output_directory=config.take("gcsOutputDirectory", str, "").rstrip("/"),
        fail_fast=_failure_policy(config) == _FAIL_FAST,
        placeholders={name: value for name, value in placeholders.items() if value},
        without_effect=tuple(ignored),
    )
    fields.finish()
    return job


def _failure_policy(config: Fields) -> str:
    policy = config.take("failurePolicy", str, "")
    if policy not in _POLICIES:
        config.note(f"{quote(policy)} is not one of {', '.join(_POLICIES[1:])}", "failurePolicy")
    return policy


def _persistent_resource(config: Fields, ignored: list[str]) -> str:
    """Return the id of the persistent resource that tasks run on by default, empty for none."""
    runtime = config.object("defaultRuntime", f"{_RUNTIME}.DefaultRuntime")
    detail = runtime.object("persistentResourceRuntimeDetail", f"{_RUNTIME}.PersistentResourceRuntimeDetail")
    name = detail.take("persistentResourceName", str, "")
    if name:
        ignored.append(f"runtimeConfig.defaultRuntime: {name} does not exist here; steps run on this machine")
    return name.rpartition("/")[2]


def _parameters(config: Fields) -> JsonObject:
    """Return the values of `parameterValues`, or of `parameters` as kfp 1.8 writes them."""
    older = {name: read_value(inner) for name, inner in config.objects("parameters", "Value")}
    values = config.take("parameterValues", dict, {})
    for name in older.keys() & values.keys():
        config.note(f"{name!r} is in 'parameters' and in 'parameterValues'; expected it in one of them")
    return {**older, **values}
