"""The methods of MetadataService by path."""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from localvertex._base.json_object import JsonObject
from localvertex.api.metadata import stores
from localvertex.api.metadata.nodes import (
    ARTIFACT,
    ARTIFACTS,
    CONTEXT,
    EVENTS,
    EXECUTION,
    EXECUTIONS,
    NodeKind,
    Nodes,
    resource_of,
)
from localvertex.api.metadata.pipeline_runs import PipelineRuns
from localvertex.api.metadata.relations import Relations
from localvertex.api.metadata.stores import COLLECTION, MetadataStore
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.listing import page
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.store import Store

Method = Callable[[Call], JsonObject]
Methods = dict[str, tuple[str, str, Method]]
"""HTTP method, path after the collection's, and implementation of each method."""

_STORE = f"{COLLECTION}/{{store:id}}"

_IN_CONTEXT = re.compile(r"""in_?[cC]ontext\(\s*["']([^"']*)["']\s*\)""")


class Metadata:
    """Vertex ML Metadata."""

    def __init__(self, store: Store) -> None:
        self.nodes = Nodes(store)
        self.runs = PipelineRuns(store, self.nodes)

    @property
    def collections(self) -> dict[str, Methods]:
        """For each collection its methods: HTTP method, path after the collection's, implementation."""
        relations, lineage = Relations(self.nodes), _Lineage(self.nodes)
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

        def refreshed(call: Call) -> JsonObject:
            self.runs.refresh()
            return method(call)

        return refreshed

    def _methods_of(self, kind: NodeKind) -> Methods:
        return {
            "create": ("POST", "", partial(self.nodes.create, kind=kind)),
            "get": ("GET", "/{id:id}", partial(self.nodes.get, kind=kind)),
            "list": ("GET", "", partial(_list_nodes, self.nodes, kind=kind)),
            "patch": ("PATCH", "/{id:id}", partial(self.nodes.patch, kind=kind)),
            "delete": ("DELETE", "/{id:id}", partial(self._delete, kind=kind)),
        }

    def _delete(self, call: Call, kind: NodeKind) -> JsonObject:
        self.nodes.delete(call, kind)
        return finished_operation(call, "DeleteOperationMetadata")


def _list_nodes(nodes: Nodes, call: Call, kind: NodeKind) -> JsonObject:
    """Build a page of the nodes of a kind, with a stand-in for each damaged one."""
    place = MetadataStore.of_call(call)
    related = defaultdict(list)
    if kind is not CONTEXT:
        field = ARTIFACTS if kind is ARTIFACT else EXECUTIONS
        for context in nodes.by_names(place, CONTEXT, _IN_CONTEXT.findall(call.query.get("filter", ""))):
            for name in nodes.members(place, context, field):
                related[name].append(context["name"])
    intact, damaged = nodes.survey(place, kind)
    found = [resource_of(each) for each in intact]
    for node_id, reason in damaged.items():
        stand_in = {"name": place.child(kind.collection, node_id), "displayName": node_id}
        found.append(stand_in | {"description": f"its record is damaged ({reason}); delete it"})
    fields = messages.field_names(kind.message) - {"metadata"} | {"inContext"}
    return page(
        call, kind.collection, found, fields=fields, searchable=lambda each: each | {"inContext": related[each["name"]]}
    )


class _Lineage:
    """The queries for a LineageSubgraph."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def of_execution(self, call: Call) -> JsonObject:
        """Return the inputs and outputs of an execution."""
        place = MetadataStore.of_call(call)
        execution = self._nodes.find(place, EXECUTION, call.resource_id)
        return self._subgraph(place, [execution], {each["artifact"] for each in execution.get(EVENTS, [])})

    def of_context(self, call: Call) -> JsonObject:
        """Return the artifacts and executions of a context, with the events between them."""
        place = MetadataStore.of_call(call)
        context = self._nodes.find(place, CONTEXT, call.resource_id)
        executions = self._nodes.by_names(place, EXECUTION, self._nodes.members(place, context, EXECUTIONS))
        return self._subgraph(place, executions, set(self._nodes.members(place, context, ARTIFACTS)))

    def _subgraph(self, place: MetadataStore, executions: list[JsonObject], names: set[str]) -> JsonObject:
        artifacts = self._nodes.by_names(place, ARTIFACT, sorted(names))
        kept = {each["name"] for each in artifacts}
        events = [
            {"execution": each["name"]} | event
            for each in executions
            for event in each.get(EVENTS, [])
            if event["artifact"] in kept
        ]
        return {
            "artifacts": [*map(resource_of, artifacts)],
            "executions": [*map(resource_of, executions)],
            "events": events,
        }
