"""Requests read by Google's own message definitions: unknown fields and wrong types are refused as the service does.

They come with google-cloud-aiplatform, whose import takes seconds: it happens at the first request that needs it.
"""

import re
from typing import Any

from localvertex.serve.api.errors import invalid


def message_class(version: str, name: str) -> Any:
    """The class of a message of the v1 or v1beta1 API."""
    if version == "v1beta1":
        from google.cloud import aiplatform_v1beta1

        return getattr(aiplatform_v1beta1, name)
    from google.cloud import aiplatform_v1

    return getattr(aiplatform_v1, name)


def normalised(version: str, name: str, body: dict[str, Any], *, snake_case: bool = False) -> dict[str, Any]:
    """The body of a request in the API's JSON: camelCase, enums by name, 64-bit integers as strings.

    With `snake_case` the fields have the names of the Python messages.

    Raises:
        ApiError: it is not such a message.
    """
    from google.protobuf import json_format

    message = message_class(version, name).pb()()
    try:
        json_format.ParseDict(body, message)
    except json_format.ParseError as error:
        # The library adds a list of all fields in further lines.
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0]}") from None
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0][:300]}") from None
    result: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=snake_case)
    return result


def field_names(version: str, name: str) -> set[str]:
    """The fields of a message, in camelCase."""
    return {field.camelcase_name for field in message_class(version, name).pb().DESCRIPTOR.fields}


def camel_case(name: str) -> str:
    """`display_name` as `displayName`; what is camelCase already stays."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def snake_case(name: str) -> str:
    """`displayName` as `display_name`."""
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
