"""contexts, executions and artifacts: what the three kinds of nodes of a metadata store have in common.

A record is the resource, with further fields that begin with `_`: a context has the names of its artifacts and
executions, an execution has its events. So each relation is written in one file, whole or not at all.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from localvertex._base.json_object import JsonObject
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.store import ID, Damaged, Store
from localvertex.store import record

ARTIFACTS, EXECUTIONS, EVENTS = "_artifacts", "_executions", "_events"
"""Fields of the records: names of artifacts and executions of a context, events of an execution."""

PIPELINE = "system.Pipeline"
"""The schema of the context of a pipeline, which contains what is in the contexts of its runs."""

_SCHEMA_VERSION = "0.0.1"

_RECORD = {
    "etag!": re.compile(r"[0-9]{1,30}"),
    **dict.fromkeys(("displayName", "schemaTitle", "uri", "state", "updateTime"), str),
    **{name: [str] for name in ("parentContexts", ARTIFACTS, EXECUTIONS)},
    EVENTS: [{"artifact!": str, "type!": str}],
    **dict.fromkeys(("metadata", "labels"), dict),
}
"""The shape of a record that is not damaged."""


@dataclass(frozen=True, kw_only=True)
class NodeKind:
    """One of the three kinds."""

    collection: str
    message: str
    id_field: str
    """The query parameter of a create request with the id."""
    fields: tuple[str, ...]
    """Fields that an update may change."""


_FIELDS = ("displayName", "labels", "metadata", "description")

CONTEXT = NodeKind(collection="contexts", message="Context", id_field="contextId", fields=_FIELDS)

EXECUTION = NodeKind(collection="executions", message="Execution", id_field="executionId", fields=(*_FIELDS, "state"))

ARTIFACT = NodeKind(
    collection="artifacts", message="Artifact", id_field="artifactId", fields=(*_FIELDS, "state", "uri")
)

KINDS = (CONTEXT, EXECUTION, ARTIFACT)


class Nodes:
    """The records of all nodes. Hold `lock` from a read to the write that depends on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lock = store.lock
        for kind in KINDS:
            store.expect(kind.collection, _RECORD)

    def read(self, place: MetadataStore, kind: NodeKind, node_id: str) -> JsonObject | None:
        """Return a record, None when it does not exist.

        Raises:
            ApiError: It is damaged.
        """
        try:
            return self._store.read(place.records(kind.collection), node_id)
        except Damaged as error:
            raise error.api_error(place.child(kind.collection, node_id)) from None

    def find(self, place: MetadataStore, kind: NodeKind, node_id: str) -> JsonObject:
        """Return a record.

        Raises:
            ApiError: It does not exist, or is damaged.
        """
        node = self.read(place, kind, node_id)
        if node is None:
            raise not_found(place.child(kind.collection, node_id))
        return node

    def by_names(self, place: MetadataStore, kind: NodeKind, names: Iterable[str]) -> list[JsonObject]:
        """Return the records with these names, without those that do not exist or are damaged."""
        found = []
        for name in dict.fromkeys(names):
            try:
                node = self._store.read(place.records(kind.collection), place.id_of(name, kind.collection))
            except (Damaged, ApiError):
                continue
            found += [node] if node else []
        return found

    def members(self, place: MetadataStore, context: JsonObject, field: str) -> list[str]:
        """Return the names of the artifacts or executions of a context; a pipeline also has its runs' names."""
        found = list(context.get(field, []))
        if context.get("schemaTitle") == PIPELINE:
            for each in self.survey(place, CONTEXT)[0]:
                found += each.get(field, []) if context["name"] in each.get("parentContexts", []) else []
        return found

    def survey(self, place: MetadataStore, kind: NodeKind) -> tuple[list[JsonObject], dict[str, str]]:
        """Return all records of a kind, and the ids of the damaged ones with the reason."""
        return self._store.survey(place.records(kind.collection))

    def write(self, place: MetadataStore, kind: NodeKind, node: JsonObject) -> None:
        """Create or replace a record.

        Raises:
            OSError: It cannot be written.
        """
        self._store.write(place.records(kind.collection), node["name"].rpartition("/")[2], node)

    def create(self, call: Call, kind: NodeKind) -> JsonObject:
        """Create a node."""
        place = MetadataStore.of_call(call)
        body = messages.parse(kind.message, call.body)
        node_id = call.query.get(kind.id_field, "") or str(uuid4())
        if not ID.fullmatch(node_id):
            raise invalid(f"{kind.id_field} {node_id[:140]!r}: expected up to 128 letters, digits, '-' and '_'")
        with self.lock:
            if self.read(place, kind, node_id) is not None:
                raise ApiError(Status.ALREADY_EXISTS, f"{place.child(kind.collection, node_id)} already exists")
            given = {key: body[key] for key in (*kind.fields, "schemaTitle", "schemaVersion") if key in body}
            node = new_node(place, kind, node_id, given)
            self.write(place, kind, node)
        return resource_of(node)

    def patch(self, call: Call, kind: NodeKind) -> JsonObject:
        """Change the fields that the request contains; the SDK sends the whole resource, and no mask."""
        place = MetadataStore.of_call(call)
        body = messages.parse(kind.message, call.body)
        if call.query.get("updateMask", "") not in ("", "*"):
            raise invalid("updateMask: leave it out; all fields in the request are changed")
        with self.lock:
            node = self.find(place, kind, call.resource_id)
            _check_etag(kind, node, body.get("etag", ""))
            node = touch(node | {name: body[name] for name in kind.fields if name in body})
            self.write(place, kind, node)
        return resource_of(node)

    def get(self, call: Call, kind: NodeKind) -> JsonObject:
        """Return a node."""
        return resource_of(self.find(MetadataStore.of_call(call), kind, call.resource_id))

    def delete(self, call: Call, kind: NodeKind) -> None:
        """Delete a node with all relations to it, so that a later one of the same name does not get them."""
        place = MetadataStore.of_call(call)
        name = place.child(kind.collection, call.resource_id)
        with self.lock:
            try:
                node = self._store.read(place.records(kind.collection), call.resource_id)
            except Damaged:
                node = {}
            if node is None:
                raise not_found(name)
            _check_etag(kind, node, call.query.get("etag", ""))
            for other in (CONTEXT, EXECUTION):
                for each in self.survey(place, other)[0]:
                    without = _without(each, name)
                    if without != each:
                        self.write(place, other, without)
            self._store.remove(place.records(kind.collection), call.resource_id)


def new_node(place: MetadataStore, kind: NodeKind, node_id: str, given: JsonObject) -> JsonObject:
    """Build the record of a new node."""
    version = {"schemaVersion": _SCHEMA_VERSION} if given.get("schemaTitle") else {}
    node = {"name": place.child(kind.collection, node_id), "createTime": record.now()}
    return touch(node | version | given)


def touch(node: JsonObject) -> JsonObject:
    """Return a record with a new time of its update and a new, greater etag of 13 digits."""
    etag = max(time.time_ns() // 1_000_000, int(node.get("etag", "0")) + 1)
    return node | {"updateTime": record.now(), "etag": str(etag)}


def resource_of(node: JsonObject) -> JsonObject:
    """Return the resource of a record."""
    return {key: value for key, value in node.items() if not key.startswith("_")}


def _check_etag(kind: NodeKind, node: JsonObject, etag: str) -> None:
    """Check that the client has seen the latest state; the SDK reads both numbers in the text.

    Raises:
        ApiError: The node has changed since.
    """
    present = node.get("etag", "")
    if etag and etag != present:
        text = f"Specified {kind.message} `etag`: `{etag[:40]}` does not match server `etag`: `{present}`"
        raise ApiError(Status.ABORTED, text)


def _without(node: JsonObject, name: str) -> JsonObject:
    """Return a record without its relations to a node."""
    lists = {
        field: [each for each in node[field] if each != name]
        for field in ("parentContexts", ARTIFACTS, EXECUTIONS)
        if field in node
    }
    events = {EVENTS: [each for each in node[EVENTS] if each["artifact"] != name]} if EVENTS in node else {}
    return node | lists | events
