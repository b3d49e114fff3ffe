"""Relations between nodes: what is in a context, the parents of a context, and the events of an execution."""

from localvertex._base.json_object import JsonObject
from localvertex.api.metadata.nodes import ARTIFACT, ARTIFACTS, CONTEXT, EVENTS, EXECUTION, EXECUTIONS, NodeKind, Nodes
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import invalid
from localvertex.store import record

_MAX_PARENTS = 10


class Relations:
    """The methods that connect nodes. They leave the etags as they are, so that clients can keep updating."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def add_artifacts_and_executions(self, call: Call) -> JsonObject:
        """Put artifacts and executions into a context; those that are in it already stay."""
        body = messages.normalise("AddContextArtifactsAndExecutionsRequest", call.body)
        place = MetadataStore.of_call(call)
        with self._nodes.lock:
            context = self._nodes.find(place, CONTEXT, call.resource_id)
            artifacts = self._check_nodes(place, ARTIFACT, body.get("artifacts", []))
            executions = self._check_nodes(place, EXECUTION, body.get("executions", []))
            added = {
                ARTIFACTS: [*dict.fromkeys([*context.get(ARTIFACTS, []), *artifacts])],
                EXECUTIONS: [*dict.fromkeys([*context.get(EXECUTIONS, []), *executions])],
            }
            self._nodes.write(place, CONTEXT, context | added)
        return {}

    def add_children(self, call: Call) -> JsonObject:
        """Make contexts the children of a context; those that are already are skipped."""
        body = messages.normalise("AddContextChildrenRequest", call.body)
        place, names = MetadataStore.of_call(call), body.get("childContexts", [])
        with self._nodes.lock:
            parent = self._nodes.find(place, CONTEXT, call.resource_id)["name"]
            children = [self._nodes.find(place, CONTEXT, place.id_of(each, CONTEXT.collection)) for each in names]
            above = self._ancestors(place, parent)
            changed = []
            for child in children:
                parents = [*dict.fromkeys([*child.get("parentContexts", []), parent])]
                if child["name"] in above:
                    raise invalid(f"childContexts: {child['name']} would be its own ancestor")
                if len(parents) > _MAX_PARENTS:
                    raise invalid(f"childContexts: {child['name']} would have more than {_MAX_PARENTS} parents")
                changed.append(child | {"parentContexts": parents})
            for child in changed:
                self._nodes.write(place, CONTEXT, child)
        return {}

    def add_events(self, call: Call) -> JsonObject:
        """Connect an execution with artifacts; an event that exists already is skipped."""
        body = messages.normalise("AddExecutionEventsRequest", call.body)
        place = MetadataStore.of_call(call)
        with self._nodes.lock:
            execution = self._nodes.find(place, EXECUTION, call.resource_id)
            self._check_nodes(place, ARTIFACT, [each.get("artifact", "") for each in body.get("events", [])])
            events = with_events(execution.get(EVENTS, []), body.get("events", []))
            self._nodes.write(place, EXECUTION, execution | {EVENTS: events})
        return {}

    def _check_nodes(self, place: MetadataStore, kind: NodeKind, names: list[str]) -> list[str]:
        """Check that nodes exist, and return their names.

        Raises:
            ApiError: One does not exist.
        """
        return [self._nodes.find(place, kind, place.id_of(each, kind.collection))["name"] for each in names]

    def _ancestors(self, place: MetadataStore, name: str) -> set[str]:
        """Return a context's name and the names of all above it."""
        found, border = {name}, [name]
        while border:
            above = {
                each for node in self._nodes.by_names(place, CONTEXT, border) for each in node.get("parentContexts", [])
            }
            border = [*(above - found)]
            found |= above
        return found


def with_events(present: list[JsonObject], added: list[JsonObject], event_time: str | None = None) -> list[JsonObject]:
    """Return the events of an execution with further ones; duplicates by artifact and type are skipped.

    Args:
        present: The events of the record.
        added: The events to add, with artifact, type and perhaps labels.
        event_time: Their time, by default now.

    Raises:
        ApiError: An event has no type.
    """
    found = {(each["artifact"], each["type"]): each for each in present}
    for each in added:
        if each.get("type") not in ("INPUT", "OUTPUT"):
            raise invalid("events: type is missing; expected INPUT or OUTPUT")
        event = {"artifact": each["artifact"], "type": each["type"], "eventTime": event_time or record.now()}
        event |= {"labels": each["labels"]} if "labels" in each else {}
        found.setdefault((event["artifact"], event["type"]), event)
    return [*found.values()]
