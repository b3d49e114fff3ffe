"""Lists of nodes, with the filters that the SDK sends: fields, `in_context("NAME")` and `parent_contexts:"NAME"`."""

import re
from collections import defaultdict
from typing import Any

from localvertex.api.metadata.nodes import ARTIFACT, ARTIFACTS, CONTEXT, EXECUTIONS, NodeKind, Nodes, resource_of
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.listing import page

_IN_CONTEXT = re.compile(r"""in_?[cC]ontext\(\s*["']([^"']*)["']\s*\)""")


def list_nodes(nodes: Nodes, call: Call, kind: NodeKind) -> dict[str, Any]:
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
