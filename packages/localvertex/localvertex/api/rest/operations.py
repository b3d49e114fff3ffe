"""Long-running operations, which here are done when the request returns and can be read afterwards."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, rpc_error
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.records import StoredRecords
from localvertex.api.rest.store import Damaged, Store
from localvertex.store import record

_COLLECTION = "operations"

TYPES = "type.googleapis.com/google.cloud.aiplatform"

_FIELDS = {"name", "done", "metadata", "response", "error"}


class Operations:
    """The operations of the API."""

    def __init__(self, store: Store) -> None:
        self._store = store
        large = frozenset({"response"})
        self._records = StoredRecords(store=store, collection=_COLLECTION, large=large, stand_in=_damaged_resource)

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
        return self._records.get(call)

    def wait(self, call: Call) -> dict[str, Any]:
        """Return one operation at once, because every operation is already done."""
        return self.get(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the operations of a location."""
        return page_of(call, self._records, fields=_FIELDS)

    def cancel(self, call: Call) -> dict[str, Any]:
        """Do nothing, because every operation is already done."""
        with suppress(Damaged):
            self._store.find(call, _COLLECTION)
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete an operation."""
        with suppress(Damaged):
            self._store.find(call, _COLLECTION)
        self._store.remove(_COLLECTION, call.resource_id)
        return {}


def _damaged_resource(call: Call, number: str, reason: str) -> dict[str, Any]:
    """Build the stand-in for an operation whose record is damaged."""
    error = rpc_error(Status.INTERNAL, f"its record is damaged ({reason}); delete it")
    return {"name": call.location.child(_COLLECTION, number), "done": True, "error": error}
