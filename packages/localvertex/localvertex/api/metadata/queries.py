"""Lists of nodes, with the filters of Vertex ML Metadata.

Beyond the fields: `in_context("NAME")`, `parent_contexts:"NAME"`, `child_contexts:"NAME"` and
`metadata.KEY.number_value=3`, also `string_value` and `bool_value`.
"""

import re
from collections import defaultdict
from typing import Any

from localvertex.api.metadata.nodes import ARTIFACT, ARTIFACTS, CONTEXT, EXECUTIONS, NodeKind, Nodes, resource_of
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.listing import page

_IN_CONTEXT = re.compile(r"""in_?[cC]ontext\(\s*["']([^"']*)["']\s*\)""")

_GROUP = r"""\([^()"']*(?:"[^"]*"[^()"']*)*\)"""

_NARROW = re.compile(rf'(?:(?:{_GROUP}|\w+="[^"]*") AND )?in_context\("([^"]*)"\)(?: AND .*)?', re.DOTALL)
"""Filters as the SDK sends them, to which only nodes of that context pass."""

_FILTER_FIELDS = {"inContext", "childContexts"}
"""Fields that exist in filters only."""

_DAMAGED = "its record is damaged ({reason}); delete it"


def list_nodes(nodes: Nodes, call: Call, kind: NodeKind) -> dict[str, Any]:
    """Build a page of the nodes of a kind."""
    place = nodes.place_of(call)
    text = call.query.get("filter", "")
    related = _contexts_of(nodes, place, kind, text)
    fields = messages.field_names(call.version, kind.message)

    def searchable(node: dict[str, Any]) -> dict[str, Any]:
        name = node["name"]
        found = related.get(name, [])
        extra = {"childContexts": found} if kind is CONTEXT else {"inContext": found}
        return node | extra | {"metadata": _spell(node.get("metadata", {}))}

    found = _candidates(nodes, place, kind, text)
    return page(call, kind.collection, found, fields=fields | _FILTER_FIELDS, searchable=searchable)


def _candidates(nodes: Nodes, place: MetadataStore, kind: NodeKind, text: str) -> list[dict[str, Any]]:
    """Return the nodes that may pass a filter; of the damaged ones a stand-in."""
    match = _NARROW.fullmatch(text.strip())
    if match and kind is not CONTEXT:
        field = ARTIFACTS if kind is ARTIFACT else EXECUTIONS
        contexts = nodes.by_names(place, CONTEXT, [match[1]])
        return [
            resource_of(node)
            for each in contexts
            for node in nodes.by_names(place, kind, nodes.members(place, each, field))
        ]
    found, damaged = nodes.survey(place, kind)
    stand_ins = [
        {
            "name": place.child(kind.collection, each),
            "displayName": each,
            "description": _DAMAGED.format(reason=reason),
        }
        for each, reason in damaged.items()
    ]
    return [*map(resource_of, found), *stand_ins]


def _contexts_of(nodes: Nodes, place: MetadataStore, kind: NodeKind, text: str) -> dict[str, list[str]]:
    """Return for each node the contexts that a filter asks for: those it is in, or the children of a context."""
    found = defaultdict(list)
    if kind is CONTEXT:
        if "child" in text:
            for each in nodes.survey(place, CONTEXT)[0]:
                for parent in each.get("parentContexts", []):
                    found[parent].append(each["name"])
        return found
    field = ARTIFACTS if kind is ARTIFACT else EXECUTIONS
    for context in nodes.by_names(place, CONTEXT, _IN_CONTEXT.findall(text)):
        for name in nodes.members(place, context, field):
            found[name].append(context["name"])
    return found


def _spell(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata as filters spell it, e.g. {"n": {"numberValue": 3}}."""
    return {key: _spell_value(value) for key, value in metadata.items()}


def _spell_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int | float):
        return {"numberValue": value}
    if isinstance(value, dict):
        return {"structValue": {"fields": _spell(value)}}
    return {"stringValue": value}
