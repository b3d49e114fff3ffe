"""Long-running operations, which here are done when the request returns, so that no client asks for them again."""

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Call
from localvertex.store import record

_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1"

_EMPTY = "type.googleapis.com/google.protobuf.Empty"


def finished_operation(call: Call, kind: str, response: str = "", content: JsonObject | None = None) -> JsonObject:
    """Return a finished operation.

    Args:
        call: The request.
        kind: The name of the metadata's message, e.g. DeleteOperationMetadata.
        response: The name of the message of the result; empty for none.
        content: The fields of the result.
    """
    now = record.now()
    return {
        "name": call.location.child("operations", record.new_number()),
        "metadata": {"@type": f"{_TYPES}.{kind}", "genericMetadata": {"createTime": now, "updateTime": now}},
        "done": True,
        "response": {"@type": f"{_TYPES}.{response}" if response else _EMPTY, **(content or {})},
    }
