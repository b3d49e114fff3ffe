"""Lineage: artifacts and executions with the events that connect them."""

from typing import Any

from localvertex.api.metadata.nodes import (
    ARTIFACT,
    ARTIFACTS,
    CONTEXT,
    EVENTS,
    EXECUTION,
    EXECUTIONS,
    Nodes,
    resource_of,
)
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.rest.call import Call

Subgraph = dict[str, Any]


class Lineage:
    """The queries for a LineageSubgraph."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def of_execution(self, call: Call) -> Subgraph:
        """Return the inputs and outputs of an execution."""
        place = MetadataStore.of_call(call)
        execution = self._nodes.find(place, EXECUTION, call.resource_id)
        return self._subgraph(place, [execution], {each["artifact"] for each in execution.get(EVENTS, [])})

    def of_context(self, call: Call) -> Subgraph:
        """Return the artifacts and executions of a context, with the events between them."""
        place = MetadataStore.of_call(call)
        context = self._nodes.find(place, CONTEXT, call.resource_id)
        executions = self._nodes.by_names(place, EXECUTION, self._nodes.members(place, context, EXECUTIONS))
        return self._subgraph(place, executions, set(self._nodes.members(place, context, ARTIFACTS)))

    def _subgraph(self, place: MetadataStore, executions: list[dict[str, Any]], names: set[str]) -> Subgraph:
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
