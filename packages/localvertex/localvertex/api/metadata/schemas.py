"""metadataSchemas: those that users add, and the titles that every metadata store of the service has."""

import re
from typing import Any
from uuid import uuid4

from localvertex.api.metadata.stores import MetadataStore, MetadataStores
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.listing import page
from localvertex.api.rest.store import ID, Damaged, Store
from localvertex.store import record

_COLLECTION = "metadataSchemas"

_TITLES = {
    "CONTEXT_TYPE": ("system.Experiment", "system.ExperimentRun", "system.Pipeline", "system.PipelineRun"),
    "EXECUTION_TYPE": (
        "system.ContainerExecution",
        "system.CustomJobExecution",
        "system.DagExecution",
        "system.ImporterExecution",
        "system.ResolverExecution",
        "system.Run",
    ),
    "ARTIFACT_TYPE": (
        "google.ClassificationMetrics",
        "google.ExperimentModel",
        "google.ForecastingMetrics",
        "google.RegressionMetrics",
        "google.UnmanagedContainerModel",
        "google.VertexDataset",
        "google.VertexEndpoint",
        "google.VertexModel",
        "google.VertexTensorboardRun",
        "system.Artifact",
        "system.ClassificationMetrics",
        "system.Dataset",
        "system.Metrics",
        "system.Model",
        "system.SlicedClassificationMetrics",
    ),
}
"""The schemas of Google that the SDK and kfp use."""

_VERSION = "0.0.1"

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class MetadataSchemas:
    """The schemas of the API. They are not applied to the metadata of nodes."""

    def __init__(self, store: Store, stores: MetadataStores) -> None:
        self._store, self._stores = store, stores
        store.expect(_COLLECTION, lambda schema: schema["schema"].strip())

    def create(self, call: Call) -> dict[str, Any]:
        """Add a schema."""
        place = self._stores.place_of(call)
        body = messages.parse(call.version, "MetadataSchema", call.body)
        schema_id = call.query.get("metadataSchemaId", "") or str(uuid4())
        if not ID.fullmatch(schema_id):
            raise invalid(f"metadataSchemaId {schema_id[:140]!r}: expected up to 128 letters, digits, '-' and '_'")
        if not body.get("schema", "").strip():
            raise invalid("metadataSchema.schema is missing")
        name = place.child(_COLLECTION, schema_id)
        with self._store.lock:
            if schema_id in _google(place) or self._store.path(place.records(_COLLECTION), schema_id).exists():
                raise ApiError(Status.ALREADY_EXISTS, f"{name} already exists")
            schema = {"schemaVersion": _VERSION} | body | {"name": name, "createTime": record.now()}
            self._store.write(place.records(_COLLECTION), schema_id, schema)
        return schema

    def get(self, call: Call) -> dict[str, Any]:
        """Return one schema."""
        place = self._stores.place_of(call)
        name = place.child(_COLLECTION, call.resource_id)
        try:
            found = self._store.read(place.records(_COLLECTION), call.resource_id)
        except Damaged as error:
            raise error.api_error(name) from None
        found = found or _google(place).get(call.resource_id)
        if found is None:
            raise not_found(name)
        return found

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the schemas of a metadata store."""
        place = self._stores.place_of(call)
        found, damaged = self._store.survey(place.records(_COLLECTION))
        found += [
            {"name": place.child(_COLLECTION, each), "description": f"its record is damaged ({reason})"}
            for each, reason in damaged.items()
        ]
        found += _google(place).values()
        return page(call, _COLLECTION, found, fields=messages.field_names(call.version, "MetadataSchema"))


def _google(place: MetadataStore) -> dict[str, dict[str, Any]]:
    """Return the schemas of Google by id, with the title only."""
    found = {}
    for kind, titles in _TITLES.items():
        for title in titles:
            words = _HUMP.sub("-", title.replace(".", "-")).lower()
            schema_id = f"{words}-v{_VERSION.replace('.', '-')}"
            found[schema_id] = {
                "name": place.child(_COLLECTION, schema_id),
                "schemaVersion": _VERSION,
                "schema": f"title: {title}\ntype: object\n",
                "schemaType": kind,
            }
    return found
