"""Responses of list methods: filtered, ordered, split into pages, and reduced to the requested fields."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from localvertex.serve.api import filters
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import invalid
from userinput.spelling import camel

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000


def page(
    call: Call,
    key: str,
    resources: list[dict[str, Any]],
    *,
    fields: set[str],
    searchable: Callable[[dict[str, Any]], dict[str, Any]] = lambda resource: resource,
) -> dict[str, Any]:
    """Build one page.

    Args:
        call: The request, whose query may contain filter, orderBy, pageSize, pageToken and readMask.
        key: The key of the list in the response, e.g. pipelineJobs.
        resources: All resources of the collection.
        fields: The names that filter and order may use, in camelCase.
        searchable: Returns a resource with the fields that exist in filters only.

    Raises:
        ApiError: A parameter of the query is wrong.
    """
    test = filters.parse(call.query.get("filter", ""), fields)
    # Checked on an empty resource first, so that a wrong mask is refused for an empty list, too.
    _masked({}, call.query.get("readMask", ""), fields)
    prefix = f"{call.location.name}/"
    found = [each for each in resources if each["name"].startswith(prefix) and test(searchable(each))]
    found = _ordered(found, call.query.get("orderBy", ""), fields)
    question = [call.query.get("filter", ""), call.query.get("orderBy", "")]
    start = _page_start(found, call.query.get("pageToken", ""), question)
    size = min(call.number("pageSize", 0) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
    chosen = found[start : start + size]
    response: dict[str, Any] = {key: [_masked(each, call.query.get("readMask", ""), fields) for each in chosen]}
    if start + size < len(found):
        response["nextPageToken"] = _token(chosen[-1], question)
    return response


def _ordered(resources: list[dict[str, Any]], order_by: str, fields: set[str]) -> list[dict[str, Any]]:
    """Sort by the fields of `a, b desc`, and the newest first among equals."""
    result = sorted(resources, key=lambda each: (each.get("createTime", ""), each["name"]), reverse=True)
    for part in reversed([part.split() for part in order_by.split(",") if part.strip()]):
        name = camel(part[0])
        if name not in fields or part[1:] not in ([], ["asc"], ["desc"]):
            raise invalid(f"orderBy {order_by[:100]!r}: expected fields with 'asc' or 'desc', e.g. create_time desc")
        result.sort(key=lambda each: str(each.get(name, "")), reverse=part[1:] == ["desc"])
    return result


def _token(last: dict[str, Any], question: list[str]) -> str:
    """Build the token of the next page."""
    return base64.urlsafe_b64encode(json.dumps([last["name"], *question]).encode()).decode()


def _page_start(found: list[dict[str, Any]], text: str, question: list[str]) -> int:
    """Return the index at which a page starts: after the last resource of the previous page.

    Raises:
        ApiError: The token belongs to another query, or its resource no longer exists.
    """
    if not text:
        return 0
    try:
        name, *before = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise invalid("pageToken was not issued by this server") from None
    if before != question:
        raise invalid("pageToken belongs to a list with another filter or order; start again from the first page")
    names = [each["name"] for each in found]
    if name not in names:
        raise invalid(
            "pageToken has expired: the resource before the page was deleted; start again from the first page"
        )
    return names.index(name) + 1


def _masked(resource: dict[str, Any], mask: str, fields: set[str]) -> dict[str, Any]:
    """Keep only the fields of a field mask; an empty mask and `*` keep all."""
    if mask in ("", "*"):
        return resource
    tree: dict[str, Any] = {}
    for path in mask.split(","):
        first, *rest = path.strip().split(".")
        if camel(first) not in fields:
            raise invalid(f"readMask: unknown field {first[:100]!r}")
        branch = tree.setdefault(camel(first), {})
        for part in [*rest, "*"]:
            branch = branch.setdefault(part, {})
    kept: dict[str, Any] = _kept(resource, tree)
    return kept


def _kept(value: Any, tree: dict[str, Any]) -> Any:
    """Keep the fields of a tree, in each element of a list; a tree that contains `*` keeps all."""
    if "*" in tree:
        return value
    if isinstance(value, list):
        return [_kept(each, tree) for each in value]
    if not isinstance(value, dict):
        return value
    named = {name if name in value else camel(name): below for name, below in tree.items()}
    return {name: _kept(each, named[name]) for name, each in value.items() if name in named}
