"""Reads requests with Google's own message definitions, so that unknown fields and wrong types are refused.

They come with google-cloud-aiplatform. Its import takes seconds, so it happens at the first request that needs it.
"""

from typing import Any

from localvertex.serve.api.errors import invalid


def _message_class(version: str, name: str) -> Any:
    """Return the class of a message of the v1 or v1beta1 API."""
    if version == "v1beta1":
        from google.cloud import aiplatform_v1beta1

        return getattr(aiplatform_v1beta1, name)
    from google.cloud import aiplatform_v1

    return getattr(aiplatform_v1, name)


def normalised(version: str, name: str, body: dict[str, Any], *, snake_case: bool = False) -> dict[str, Any]:
    """Convert the body of a request to the API's JSON: camelCase, enums by name, 64-bit integers as strings.

    With `snake_case` the fields have the names of the Python messages.

    Raises:
        ApiError: It is not such a message.
    """
    from google.protobuf import json_format

    message = _message_class(version, name).pb()()
    try:
        json_format.ParseDict(body, message)
    except json_format.ParseError as error:
        # The library lists all fields on the following lines.
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0]}") from None
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise invalid(f"Invalid JSON payload received: {str(error).splitlines()[0][:300]}") from None
    result: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=snake_case)
    return result


def field_names(version: str, name: str) -> set[str]:
    """Return the fields of a message, in camelCase."""
    return {field.camelcase_name for field in _message_class(version, name).pb().DESCRIPTOR.fields}
