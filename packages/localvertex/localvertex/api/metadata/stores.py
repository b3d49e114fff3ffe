"""metadataStores: the roots of contexts, executions, artifacts and schemas."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.operations import TYPES, Operations
from localvertex.api.rest.store import ID, Damaged, Store
from localvertex.store import record

COLLECTION = "metadataStores"

_DEFAULT = "default"

_INPUT_FIELDS = ("description", "encryptionSpec", "dataplexConfig")
"""Fields that a user may set; the service sets the others."""


@dataclass(frozen=True, kw_only=True)
class MetadataStore:
    """One metadata store."""

    location: Location
    store_id: str = _DEFAULT

    @property
    def name(self) -> str:
        """The resource name of the metadata store."""
        return self.location.child(COLLECTION, self.store_id)

    def child(self, collection: str, resource_id: str) -> str:
        """Return the name of a resource in this metadata store."""
        return f"{self.name}/{collection}/{resource_id}"

    def records(self, collection: str) -> str:
        """Return the collection of the `Store` that contains the records of this metadata store."""
        return f"{_records(self.location)}/{self.store_id}/{collection}"

    def id_of(self, name: str, collection: str) -> str:
        """Return the id in the name of a resource of this metadata store.

        Raises:
            ApiError: It is not a name in this metadata store.
        """
        prefix = self.child(collection, "")
        if not name.startswith(prefix) or not ID.fullmatch(name.removeprefix(prefix)):
            raise invalid(f"{name[:300]!r}: expected {prefix}ID")
        return name.removeprefix(prefix)


class MetadataStores:
    """The metadata stores of the API."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store, self._operations = store, operations

    def create(self, call: Call) -> dict[str, Any]:
        """Create a metadata store; the operation is done when the request returns."""
        body = messages.parse(call.version, "MetadataStore", call.body)
        store_id = call.query.get("metadataStoreId", "") or str(uuid4())
        if not ID.fullmatch(store_id):
            raise invalid(f"metadataStoreId {store_id[:100]!r}: expected letters, digits, '-' and '_'")
        place = MetadataStore(location=call.location, store_id=store_id)
        given = {name: body[name] for name in _INPUT_FIELDS if name in body}
        with self._store.lock:
            if self.exists(place):
                raise ApiError(Status.ALREADY_EXISTS, f"{place.name} already exists")
            created = self._write(place, given)
        response = {"@type": f"{TYPES}.{call.version}.MetadataStore"} | created
        return self._operations.finished_operation(call, "CreateMetadataStoreOperationMetadata", response)

    def get(self, call: Call) -> dict[str, Any]:
        """Return one metadata store."""
        place = MetadataStore(location=call.location, store_id=call.resource_id)
        try:
            found = self._store.read(_records(place.location), place.store_id)
        except Damaged as error:
            raise error.api_error(place.name) from None
        if found is None:
            raise not_found(place.name)
        return found

    def exists(self, place: MetadataStore) -> bool:
        """Return whether a metadata store exists; the contents of one whose record is damaged are still used."""
        return exists(self._store, place)

    def place_of(self, call: Call) -> MetadataStore:
        """Return the metadata store in the path of a request.

        Raises:
            ApiError: It does not exist.
        """
        place = MetadataStore(location=call.location, store_id=call.parents["store"])
        if not self.exists(place):
            raise not_found(place.name)
        return place

    def ensure(self, location: Location) -> MetadataStore:
        """Create the default metadata store of a location unless it exists.

        Raises:
            OSError: It cannot be created.
        """
        place = MetadataStore(location=location)
        with self._store.lock:
            if not self.exists(place):
                self._write(place, {})
        return place

    def _write(self, place: MetadataStore, given: dict[str, Any]) -> dict[str, Any]:
        now = record.now()
        content = {"name": place.name, "createTime": now, "updateTime": now, "state": {}} | given
        self._store.write(_records(place.location), place.store_id, content)
        return content


def exists(store: Store, place: MetadataStore) -> bool:
    """Return whether a metadata store exists in the records of a server."""
    return store.path(_records(place.location), place.store_id).is_file()


def _records(location: Location) -> str:
    """Return the collection of the `Store` that contains a location's metadata stores."""
    return f"metadata/{location.project}/{location.region}/{COLLECTION}"
