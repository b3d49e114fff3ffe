"""Long-running operations, which here are done when the request returns and can be read afterwards."""

from typing import Any
from uuid import uuid4

from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, rpc_error
from localvertex.api.rest.store import Damaged, Store
from localvertex.store import record

_COLLECTION = "operations"

TYPES = "type.googleapis.com/google.cloud.aiplatform"


class Operations:
    """The operations of the API."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def finished_operation(self, call: Call, kind: str, response: dict[str, Any] | None = None) -> dict[str, Any]:
        """Store and return a finished operation.

        Args:
            call: The request.
            kind: The name of the metadata's message, e.g. DeleteOperationMetadata.
            response: The result; None for an empty one.
        """
        if response is None:
            response = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        now, number = record.now(), str(uuid4().int >> 66)
        operation = {
            "name": call.location.child(_COLLECTION, number),
            "metadata": {
                "@type": f"{TYPES}.{call.version}.{kind}",
                "genericMetadata": {"createTime": now, "updateTime": now},
            },
            "done": True,
            "response": response,
        }
        # The reported work has been done already.
        self._store.keep(_COLLECTION, number, operation)
        return operation

    def get(self, call: Call) -> dict[str, Any]:
        """Return one operation."""
        try:
            return self._store.find(call, _COLLECTION)
        except Damaged as error:
            failed = rpc_error(Status.INTERNAL, f"its record is damaged ({error})")
            return {"name": call.location.child(_COLLECTION, call.resource_id), "done": True, "error": failed}
