"""The metadata store of a location, `default`, which contains contexts, executions and artifacts and always exists."""

from dataclasses import dataclass

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import invalid, not_found
from localvertex.api.rest.store import ID

COLLECTION = "metadataStores"

_ID = "default"


@dataclass(frozen=True, kw_only=True)
class MetadataStore:
    """The metadata store of a location."""

    location: Location

    @classmethod
    def of_call(cls, call: Call) -> "MetadataStore":
        """Return the metadata store in the path of a request.

        Raises:
            ApiError: It has another name.
        """
        store_id = call.parents.get("store", call.resource_id)
        if store_id != _ID:
            raise not_found(call.location.child(COLLECTION, store_id))
        return cls(location=call.location)

    def child(self, collection: str, resource_id: str) -> str:
        """Return the name of a resource in this metadata store."""
        return f"{self.location.child(COLLECTION, _ID)}/{collection}/{resource_id}"

    def records(self, collection: str) -> str:
        """Return the collection of the `Store` that contains the records of this metadata store."""
        return f"metadata/{self.location.project}/{self.location.region}/{COLLECTION}/{_ID}/{collection}"

    def id_of(self, name: str, collection: str) -> str:
        """Return the id in the name of a resource of this metadata store.

        Raises:
            ApiError: It is not a name in this metadata store.
        """
        prefix = self.child(collection, "")
        if not name.startswith(prefix) or not ID.fullmatch(name.removeprefix(prefix)):
            raise invalid(f"{name[:300]!r}: expected {prefix}ID")
        return name.removeprefix(prefix)


def get(call: Call) -> JsonObject:
    """Return the metadata store of a location."""
    return {"name": MetadataStore.of_call(call).location.child(COLLECTION, _ID), "state": {}}
