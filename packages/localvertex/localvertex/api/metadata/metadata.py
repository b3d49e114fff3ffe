"""The methods of MetadataService by path."""

from collections.abc import Callable
from functools import partial
from typing import Any

from localvertex.api.metadata import stores
from localvertex.api.metadata.lineage import Lineage
from localvertex.api.metadata.nodes import ARTIFACT, CONTEXT, EXECUTION, NodeKind, Nodes
from localvertex.api.metadata.pipeline_runs import PipelineRuns
from localvertex.api.metadata.queries import list_nodes
from localvertex.api.metadata.relations import Relations
from localvertex.api.metadata.stores import COLLECTION
from localvertex.api.rest.call import Call
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.store import Store

Method = Callable[[Call], dict[str, Any]]
Methods = dict[str, tuple[str, str, Method]]
"""HTTP method, path after the collection's, and implementation of each method."""

_STORE = f"{COLLECTION}/{{store:id}}"


class Metadata:
    """Vertex ML Metadata."""

    def __init__(self, store: Store) -> None:
        self.nodes = Nodes(store)
        self.runs = PipelineRuns(store, self.nodes)

    @property
    def collections(self) -> dict[str, Methods]:
        """For each collection its methods: HTTP method, path after the collection's, implementation."""
        relations, lineage = Relations(self.nodes), Lineage(self.nodes)
        one = "/{id:id}"
        found: dict[str, Methods] = {
            COLLECTION: {"get": ("GET", one, stores.get)},
            f"{_STORE}/contexts": self._methods_of(CONTEXT)
            | {
                "add": ("POST", f"{one}:addContextArtifactsAndExecutions", relations.add_artifacts_and_executions),
                "addChildren": ("POST", f"{one}:addContextChildren", relations.add_children),
                "lineage": ("GET", f"{one}:queryContextLineageSubgraph", lineage.of_context),
            },
            f"{_STORE}/executions": self._methods_of(EXECUTION)
            | {
                "addEvents": ("POST", f"{one}:addExecutionEvents", relations.add_events),
                "lineage": ("GET", f"{one}:queryExecutionInputsAndOutputs", lineage.of_execution),
            },
            f"{_STORE}/artifacts": self._methods_of(ARTIFACT),
        }
        return {
            collection: {
                name: (verb, path, self._with_refresh(method)) for name, (verb, path, method) in methods.items()
            }
            for collection, methods in found.items()
        }

    def _with_refresh(self, method: Method) -> Method:
        """Return a method that first adds what pipeline runs have done."""

        def refreshed(call: Call) -> dict[str, Any]:
            self.runs.refresh()
            return method(call)

        return refreshed

    def _methods_of(self, kind: NodeKind) -> Methods:
        return {
            "create": ("POST", "", partial(self.nodes.create, kind=kind)),
            "get": ("GET", "/{id:id}", partial(self.nodes.get, kind=kind)),
            "list": ("GET", "", partial(list_nodes, self.nodes, kind=kind)),
            "patch": ("PATCH", "/{id:id}", partial(self.nodes.patch, kind=kind)),
            "delete": ("DELETE", "/{id:id}", partial(self._delete, kind=kind)),
        }

    def _delete(self, call: Call, kind: NodeKind) -> dict[str, Any]:
        self.nodes.delete(call, kind)
        return finished_operation(call, "DeleteOperationMetadata")
