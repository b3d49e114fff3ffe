"""The messages of compiled files: their fields by descriptor, and the fields that a file uses."""

import functools
from collections.abc import Iterator
from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2

from localvertex._base.compiled.fields import Here, treatments

Field = tuple[str, str]
"""A message without its package, and the JSON name of one of its fields."""

_KFP = pipeline_spec_pb2.DESCRIPTOR.message_types_by_name
SPEC, DEPLOYMENT, PLATFORMS, KFP_JOB = (
    _KFP[name] for name in ("PipelineSpec", "PipelineDeploymentConfig", "PlatformSpec", "PipelineJob")
)
_INSIDE = {("PipelineJob", "pipelineSpec"): SPEC, ("PipelineSpec", "deploymentSpec"): DEPLOYMENT}
"""Fields of the type Struct that contain another message."""


@functools.cache
def jobs() -> list[Any]:
    """Return the message of a job in both versions of the API, whose import takes seconds."""
    from google.cloud import aiplatform_v1, aiplatform_v1beta1

    return [version.PipelineJob.pb(version.PipelineJob()).DESCRIPTOR for version in (aiplatform_v1, aiplatform_v1beta1)]


def name_of(message: Any) -> str:
    """Return the name of a message without its package."""
    return str(message.full_name.removeprefix(f"{message.file.package}."))


def every_field() -> set[Field]:
    """Return every field of the messages that a compiled file can consist of."""
    found: set[Field] = set()
    for message in (SPEC, DEPLOYMENT, PLATFORMS, KFP_JOB, *jobs()):
        found |= set(_fields(message, set()))
    return found


def _fields(message: Any, seen: set[str]) -> Iterator[Field]:
    seen.add(name_of(message))
    for field in message.fields:
        yield name_of(message), field.json_name
        inside = _message(field)
        # Google's own messages below a field that nothing reads are not part of the table.
        is_read = message.file.package == "ml_pipelines" or _here(message, field) not in (Here.NO_EFFECT, Here.REFUSED)
        if inside is not None and is_read and name_of(inside) not in seen and _is_own(inside):
            yield from _fields(inside, seen)


def _here(message: Any, field: Any) -> Here | None:
    row = treatments().get((name_of(message), field.json_name))
    return row.here if row else None


def _is_own(message: Any) -> bool:
    return not str(message.full_name).startswith(("google.protobuf.", "google.rpc."))


def _message(field: Any) -> Any:
    """Return the message of a field, or of the values of a map; None for plain values."""
    inside = field.message_type
    if inside is not None and inside.GetOptions().map_entry:
        inside = inside.fields_by_name["value"].message_type
    return inside


def used(documents: list[dict[str, Any]]) -> set[Field]:
    """Return the fields that a compiled file uses."""
    message = jobs()[-1] if "pipelineSpec" in documents[0] else SPEC
    found = set(_used(message, documents[0]))
    return found.union(*(_used(PLATFORMS, each) for each in documents[1:]))


def _used(message: Any, value: dict[str, Any]) -> Iterator[Field]:
    fields = {field.json_name: field for field in message.fields}
    for name, inner in value.items():
        if name not in fields:
            continue
        key = name_of(message), name
        yield key
        inside = _INSIDE.get(key) or _message(fields[name])
        if inside is None or not _is_own(inside):
            continue
        is_map = fields[name].message_type is not None and fields[name].message_type.GetOptions().map_entry
        for each in inner.values() if is_map else inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                yield from _used(inside, each)
