"""Answers of list methods: filtered, ordered, cut into pages, and reduced to the fields that were asked for."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from localvertex.serve.api import filters
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import invalid
from localvertex.serve.api.messages import camel_case

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000


def page(
    call: Call,
    key: str,
    resources: list[dict[str, Any]],
    *,
    fields: set[str],
    searchable: Callable[[dict[str, Any]], dict[str, Any]] = lambda resource: resource,
) -> dict[str, Any]:
    """One page.

    Args:
        call: Its query may hold filter, orderBy, pageSize, pageToken and readMask.
        key: Of the list in the answer, e.g. pipelineJobs.
        resources: All of the collection.
        fields: Names that filter and order may use, in camelCase.
        searchable: A resource with what only filters see.

    Raises:
        ApiError: one of them is not understood.
    """
    test = filters.parse(call.query.get("filter", ""), fields)
    # Asked of nothing first: a wrong mask is refused also where there is nothing to show.
    masked({}, call.query.get("readMask", ""), fields)
    prefix = f"{call.location.name}/"
    found = [each for each in resources if each["name"].startswith(prefix) and test(searchable(each))]
    found = ordered(found, call.query.get("orderBy", ""), fields)
    asked = [call.query.get("filter", ""), call.query.get("orderBy", "")]
    start = place_of_token(found, call.query.get("pageToken", ""), asked)
    size = min(call.number("pageSize", 0) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
    chosen = found[start : start + size]
    answer: dict[str, Any] = {key: [masked(each, call.query.get("readMask", ""), fields) for each in chosen]}
    if start + size < len(found):
        answer["nextPageToken"] = token(chosen[-1], asked)
    return answer


def ordered(resources: list[dict[str, Any]], order_by: str, fields: set[str]) -> list[dict[str, Any]]:
    """By the fields of `a, b desc`; the newest first where nothing else decides."""
    result = sorted(resources, key=lambda each: (each.get("createTime", ""), each["name"]), reverse=True)
    for part in reversed([part.split() for part in order_by.split(",") if part.strip()]):
        name = camel_case(part[0])
        if name not in fields or part[1:] not in ([], ["asc"], ["desc"]):
            raise invalid(f"orderBy {order_by[:100]!r}: fields with 'asc' or 'desc' expected, e.g. create_time desc")
        result.sort(key=lambda each: str(each.get(name, "")), reverse=part[1:] == ["desc"])
    return result


def token(last: dict[str, Any], asked: list[str]) -> str:
    """What the next page is asked for with."""
    return base64.urlsafe_b64encode(json.dumps([last["name"], *asked]).encode()).decode()


def place_of_token(found: list[dict[str, Any]], text: str, asked: list[str]) -> int:
    """Where the page begins: after the last resource of the page before.

    Raises:
        ApiError: the token is of another question, or what it stands for is gone.
    """
    if not text:
        return 0
    try:
        name, *before = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise invalid("pageToken is none that this server gave out") from None
    if before != asked:
        raise invalid("pageToken belongs to a list with another filter or order; ask again from the first page")
    names = [each["name"] for each in found]
    if name not in names:
        raise invalid("pageToken has expired: the resource before the page is gone; ask again from the first page")
    return names.index(name) + 1


def masked(resource: dict[str, Any], mask: str, fields: set[str]) -> dict[str, Any]:
    """Only the fields of a field mask; everything for an empty one and `*`."""
    if mask in ("", "*"):
        return resource
    result: dict[str, Any] = {}
    for path in mask.split(","):
        first, *rest = path.strip().split(".")
        if camel_case(first) not in fields:
            raise invalid(f"readMask: there is no field {first[:100]!r}")
        copy_path(resource, result, [camel_case(first), *rest])
    return result


def copy_path(source: Any, target: dict[str, Any], path: list[str]) -> None:
    """Copies one field, however deep; nothing when it is not set."""
    key = path[0] if isinstance(source, dict) and path[0] in source else camel_case(path[0])
    if not isinstance(source, dict) or key not in source:
        return
    if len(path) == 1:
        target[key] = source[key]
    else:
        copy_path(source[key], target.setdefault(key, {}), path[1:])
