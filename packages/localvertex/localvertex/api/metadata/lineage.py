"""Lineage: artifacts and executions with the events that connect them."""

from collections import defaultdict
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
from localvertex.api.rest import filters, messages
from localvertex.api.rest.call import Call

Subgraph = dict[str, Any]


class Lineage:
    """The queries for a LineageSubgraph."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def of_execution(self, call: Call) -> Subgraph:
        """Return the inputs and outputs of an execution."""
        place = self._nodes.place_of(call)
        execution = self._nodes.find(place, EXECUTION, call.resource_id)
        return self._subgraph(place, [execution], {each["artifact"] for each in execution.get(EVENTS, [])})

    def of_context(self, call: Call) -> Subgraph:
        """Return the artifacts and executions of a context, with the events between them."""
        place = self._nodes.place_of(call)
        context = self._nodes.find(place, CONTEXT, call.resource_id)
        executions = self._nodes.by_names(place, EXECUTION, self._nodes.members(place, context, EXECUTIONS))
        return self._subgraph(place, executions, set(self._nodes.members(place, context, ARTIFACTS)))

    def of_artifact(self, call: Call) -> Subgraph:
        """Return what can be reached from an artifact, within a number of events if one is given."""
        place = self._nodes.place_of(call)
        start = self._nodes.find(place, ARTIFACT, call.resource_id)["name"]
        limit = call.number("maxHops", 0) if call.query.get("maxHops") else None
        executions = {each["name"]: each for each in self._nodes.survey(place, EXECUTION)[0]}
        reached = _reach(start, list(executions.values()), limit)
        found = [executions[name] for name in executions if name in reached]
        graph = self._subgraph(place, found, reached - executions.keys())
        fields = messages.field_names(call.version, "Artifact")
        test = filters.parse(call.query.get("filter", ""), fields)
        graph["artifacts"] = [each for each in graph["artifacts"] if test(each)]
        names = {each["name"] for each in graph["artifacts"]}
        graph["events"] = [each for each in graph["events"] if each["artifact"] in names]
        return graph

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


def _reach(start: str, executions: list[dict[str, Any]], limit: int | None) -> set[str]:
    """Return the names of artifacts and executions within `limit` events of an artifact."""
    neighbours = defaultdict(set)
    for each in executions:
        for event in each.get(EVENTS, []):
            neighbours[each["name"]].add(event["artifact"])
            neighbours[event["artifact"]].add(each["name"])
    found, border, hops = {start}, {start}, 0
    while border and (limit is None or hops < limit):
        border = {name for each in border for name in neighbours[each]} - found
        found |= border
        hops += 1
    return found
