"""The methods of MetadataService by path."""

from collections.abc import Callable
from functools import partial
from typing import Any

from localvertex.serve.api.call import Call
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.metadata.lineage import Lineage
from localvertex.serve.metadata.nodes import ARTIFACT, CONTEXT, EXECUTION, KINDS, Kind, Nodes, shown
from localvertex.serve.metadata.pipeline_runs import PipelineRuns
from localvertex.serve.metadata.queries import list_nodes
from localvertex.serve.metadata.relations import Relations
from localvertex.serve.metadata.schemas import MetadataSchemas
from localvertex.serve.metadata.stores import MetadataStores

Method = Callable[[Call], dict[str, Any]]

_STORE = "/{store:id}"


class Metadata:
    """Vertex ML Metadata."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._operations = operations
        self.stores = MetadataStores(store, operations)
        self.nodes = Nodes(store, self.stores)
        self.schemas = MetadataSchemas(store, self.stores)
        self.runs = PipelineRuns(store, self.stores, self.nodes)

    @property
    def methods(self) -> dict[str, tuple[str, str, Method]]:
        """The methods: HTTP method, path after `metadataStores`, implementation."""
        stores = self.stores
        found: dict[str, tuple[str, str, Method]] = {
            "create": ("POST", "", stores.create),
            "get": ("GET", "/{id:id}", stores.get),
            "list": ("GET", "", stores.list_all),
            "createSchema": ("POST", f"{_STORE}/metadataSchemas", self.schemas.create),
            "getSchema": ("GET", f"{_STORE}/metadataSchemas/{{id:id}}", self.schemas.get),
            "listSchemas": ("GET", f"{_STORE}/metadataSchemas", self.schemas.list_all),
        }
        for kind in KINDS:
            found |= self._methods_of(kind)
        relations, lineage = Relations(self.nodes), Lineage(self.nodes)
        further: list[tuple[str, Kind, str, Method]] = [
            ("POST", CONTEXT, "addContextArtifactsAndExecutions", relations.add_artifacts_and_executions),
            ("POST", CONTEXT, "addContextChildren", relations.add_children),
            ("POST", CONTEXT, "removeContextChildren", relations.remove_children),
            ("POST", EXECUTION, "addExecutionEvents", relations.add_events),
            ("GET", CONTEXT, "queryContextLineageSubgraph", lineage.of_context),
            ("GET", EXECUTION, "queryExecutionInputsAndOutputs", lineage.of_execution),
            ("GET", ARTIFACT, "queryArtifactLineageSubgraph", lineage.of_artifact),
        ]
        found |= {
            name: (http_method, f"{_STORE}/{kind.collection}/{{id:id}}:{name}", method)
            for http_method, kind, name, method in further
        }
        return {name: (verb, path, self._refreshed(method)) for name, (verb, path, method) in found.items()}

    def _refreshed(self, method: Method) -> Method:
        """Return a method that first adds what pipeline runs have done."""

        def refreshed(call: Call) -> dict[str, Any]:
            self.runs.refresh()
            return method(call)

        return refreshed

    def _methods_of(self, kind: Kind) -> dict[str, tuple[str, str, Method]]:
        every, one = f"{_STORE}/{kind.collection}", f"{_STORE}/{kind.collection}/{{id:id}}"
        return {
            f"create{kind.message}": ("POST", every, partial(self.nodes.create, kind=kind)),
            f"get{kind.message}": ("GET", one, partial(self._get, kind=kind)),
            f"list{kind.message}s": ("GET", every, partial(list_nodes, self.nodes, kind=kind)),
            f"patch{kind.message}": ("PATCH", one, partial(self.nodes.patch, kind=kind)),
            f"delete{kind.message}": ("DELETE", one, partial(self._delete, kind=kind)),
        }

    def _get(self, call: Call, kind: Kind) -> dict[str, Any]:
        return shown(self.nodes.find(self.nodes.place_of(call), kind, call.resource_id))

    def _delete(self, call: Call, kind: Kind) -> dict[str, Any]:
        self.nodes.delete(call, kind)
        return self._operations.done(call, "DeleteOperationMetadata")
