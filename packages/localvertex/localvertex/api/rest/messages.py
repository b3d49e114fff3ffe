"""Reads requests with Google's own message definitions, so that unknown fields and wrong types are refused.

They come with google-cloud-aiplatform. Its import takes seconds, so it happens at the first request that needs it.
"""

import re
from collections.abc import Iterator
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.errors import invalid

_MAX_NAME = 128

_MAX_LABELS = 64

_LABEL = re.compile(r"[\w-]{1,64}")
"""A key or a value of a label: letters of any language, digits, '_' and '-'; no upper case."""


def _message_class(name: str) -> Any:
    """Return the protobuf class of a message."""
    from google.cloud import aiplatform_v1

    return getattr(aiplatform_v1, name).pb()


def normalise(name: str, body: JsonObject, *, snake_case: bool = False) -> JsonObject:
    """Convert the body of a request to the API's JSON: camelCase, enums by name, 64-bit integers as strings.

    With `snake_case` the fields have the names of the Python messages.

    Raises:
        ApiError: It is not such a message.
    """
    from google.protobuf import json_format

    message = _message_class(name)()
    try:
        json_format.ParseDict(body, message)
    except json_format.ParseError as error:
        # The library lists all fields on the following lines.
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0]}") from None
    except (TypeError, ValueError, AttributeError, RecursionError, SystemError) as error:
        # SystemError: half of a character, an unpaired surrogate, as the name of a field.
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0][:300]}") from None
    result: JsonObject = json_format.MessageToDict(message, preserving_proto_field_name=snake_case)
    return result


def parse(name: str, body: JsonObject, *, snake_case: bool = False) -> JsonObject:
    """Convert the body of a request as `normalise` does, and check the names in it.

    Raises:
        ApiError: It is not such a message, or `check_names` refuses it.
    """
    result = normalise(name, body, snake_case=snake_case)
    check_names(result)
    check_names(result.get("createPipelineJobRequest", {}).get("pipelineJob", {}))
    return result


def check_names(resource: JsonObject) -> None:
    """Check the display name and the labels of a resource as the API documents them.

    Raises:
        ApiError: A name is too long, or a label has other characters.
    """
    for field, problem in problems_of_names(resource):
        raise invalid(f"{field}: {problem}")


def problems_of_names(resource: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each name that `check_names` refuses."""
    name = str(resource.get("displayName", resource.get("display_name", "")))
    if len(name) > _MAX_NAME:
        yield "displayName", f"expected up to {_MAX_NAME} characters, found {len(name)}"
    labels: dict[str, str] = resource.get("labels", {})
    if len(labels) > _MAX_LABELS:
        yield "labels", f"expected up to {_MAX_LABELS}, found {len(labels)}"
    for key, value in labels.items():
        for kind, text in (("key", key), *([("value", value)] if value else [])):
            if not _LABEL.fullmatch(text) or text != text.lower():
                problem = "expected up to 64 lower-case letters, digits, '_' and '-'"
                yield "labels", f"{kind} {text[:80]!r} of {key[:80]!r}: {problem}"


def field_names(name: str) -> set[str]:
    """Return the fields of a message, in camelCase."""
    return {field.camelcase_name for field in _message_class(name).DESCRIPTOR.fields}
