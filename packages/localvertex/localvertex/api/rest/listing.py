"""Responses of list methods: filtered, ordered and split into pages."""

import base64
import binascii
import json
from bisect import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import camel
from localvertex.api.rest import filters
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.index import Place
from localvertex.api.rest.records import Resource, StoredRecords

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000

_KEY_LENGTH = 500
"""Characters of a value that decide its place, because the token of a page contains them."""


def page(
    call: Call,
    key: str,
    resources: list[Resource],
    *,
    fields: set[str],
    searchable: Callable[[Resource], Resource] = lambda resource: resource,
) -> JsonObject:
    """Build one page of resources in memory.

    Args:
        call: The request, whose query may contain filter, orderBy, pageSize, pageToken and readMask.
        key: The key of the list in the response, e.g. pipelineJobs.
        resources: All resources of the collection.
        fields: The names that filter and order may use, in camelCase.
        searchable: Returns a resource with the fields that exist in filters only.

    Raises:
        ApiError: A parameter of the query is wrong.
    """
    query = Query.of(call, fields)
    names, token = query.select(query.places(searchable(each) for each in resources))
    by_name = {each["name"]: each for each in resources}
    return query.response(key, [by_name[each] for each in names], token)


def page_of(call: Call, records: StoredRecords, *, fields: set[str]) -> JsonObject:
    """Build one page of a collection in the store as `page` does; read only the records that it contains, if possible.

    Raises:
        ApiError: A parameter of the query is wrong.
    """
    query = Query.of(call, fields)
    if query.used & records.large:
        places = query.places(records.find_all(call, query.used))
    else:
        places = records.store.index.places(
            records,
            (query.prefix, query.question),
            lambda *record: query.place_of(records.content(call, *record)),
            query.in_order,
        )
    names, token = query.select(places)
    read = (records.page_resource(call, each.rpartition("/")[2]) for each in names)
    # A record may have changed since it was selected.
    resources = [records.complete(each) for each in read if each is not None and query.test(records.searchable(each))]
    return query.response(records.collection, resources, token)


@dataclass(frozen=True, kw_only=True)
class Query:
    """Parsed list parameters."""

    prefix: str
    """Prefix of the names of all resources of the location."""
    test: filters.Test
    order: tuple[tuple[str, bool], ...]
    """The fields, and whether the order is descending."""
    used: set[str]
    """Fields that the filter and the order look at."""
    size: int
    after: Place | None
    """The place of the last resource of the previous page."""
    question: tuple[str, str]
    """Filter and order as text, which are the same for all pages."""
    mask: JsonObject
    """The fields to return, as a tree whose leaves are empty; an empty tree returns all."""

    @classmethod
    def of(cls, call: Call, fields: set[str]) -> "Query":
        """Read the query of a request.

        Raises:
            ApiError: A parameter is wrong.
        """
        question = call.query.get("filter", ""), call.query.get("orderBy", "")
        test, used = filters.parse_with_fields(question[0], fields)
        order = _order(question[1], fields)
        return cls(
            prefix=f"{call.location.name}/",
            test=test,
            order=order,
            used={each[0] for each in used} | {name for name, _ in order},
            size=min(call.number("pageSize", 0) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE),
            after=_place(call.query.get("pageToken", ""), question, len(order) + 2),
            question=question,
            mask=_mask(call.query.get("readMask", ""), fields),
        )

    def places(self, resources: Iterable[Resource]) -> list[Place]:
        """Return the places of the resources that pass the filter, in their order."""
        return self.in_order([place for each in resources if (place := self.place_of(each))])

    def place_of(self, resource: Resource | None) -> Place | None:
        """Return the place of a resource, None if it does not pass the filter or is not one of the location."""
        if resource is None or not resource["name"].startswith(self.prefix) or not self.test(resource):
            return None
        values = self.order and [str(resource.get(name, ""))[:_KEY_LENGTH] for name, _ in self.order]
        return *values, resource.get("createTime", ""), resource["name"]

    def in_order(self, places: list[Place]) -> list[Place]:
        """Return places in their order."""
        if all(self._directions):
            return sorted(places, reverse=True)
        for index, is_descending in reversed([*enumerate(self._directions)]):
            places = sorted(places, key=lambda place, index=index: place[index], reverse=is_descending)  # type: ignore[misc]
        return places

    def select(self, places: list[Place]) -> tuple[list[str], str]:
        """Return the names of the resources of the page, and the token of the next page, empty for the last one."""
        after = self.after
        start = bisect(places, False, key=lambda each: self._follows(each, after)) if after else 0
        chosen, has_more = places[start : start + self.size], len(places) > start + self.size
        token = base64.urlsafe_b64encode(json.dumps([chosen[-1], *self.question]).encode()).decode() if chosen else ""
        return [place[-1] for place in chosen], token if has_more else ""

    def response(self, key: str, resources: Iterable[Resource], token: str) -> JsonObject:
        """Build the response."""
        return {key: [_masked(each, self.mask) for each in resources]} | ({"nextPageToken": token} if token else {})

    @property
    def _directions(self) -> list[bool]:
        """Whether the order of each part of a place is descending: the newest come first among equals."""
        return [*(is_descending for _, is_descending in self.order), True, True]

    def _follows(self, place: Place, earlier: Place) -> bool:
        for mine, other, is_descending in zip(place, earlier, self._directions, strict=True):
            if mine != other:
                return (mine < other) is is_descending
        return False


def _order(order_by: str, fields: set[str]) -> tuple[tuple[str, bool], ...]:
    """Read `a, b desc`."""
    order = []
    for name, *direction in [part.split() for part in order_by.split(",") if part.strip()]:
        if camel(name) not in fields or direction not in ([], ["asc"], ["desc"]):
            raise invalid(f"orderBy {order_by[:100]!r}: expected fields with 'asc' or 'desc', e.g. create_time desc")
        order.append((camel(name), direction == ["desc"]))
    return tuple(order)


def _mask(text: str, fields: set[str]) -> JsonObject:
    """Read `display_name,job_detail.task_details`; a field and a part of it are the whole field."""
    mask: JsonObject = {}
    for path in text.split(",") if text not in ("", "*") else ():
        parts = [camel(part) for part in path.strip().split(".")]
        if parts[0] not in fields:
            raise invalid(f"readMask: unknown field {parts[0][:100]!r}; expected fields of the resource")
        branch = mask
        for part in (*parts, "*"):
            branch = branch.setdefault(part, {})
    return mask


def _masked(value: Any, mask: JsonObject) -> Any:
    """Keep the fields of a mask, in each element of a list."""
    if not mask or "*" in mask:
        return value
    if isinstance(value, list):
        return [_masked(each, mask) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _masked(each, mask[camel(name)]) for name, each in value.items() if camel(name) in mask}


def _place(token: str, question: tuple[str, str], length: int) -> Place | None:
    """Read a page token; the page starts after this place, whether its resource still exists or not.

    Raises:
        ApiError: This server did not issue the token, or for another query.
    """
    if not token:
        return None
    try:
        place, *before = json.loads(base64.urlsafe_b64decode(token.encode()))
        is_place = isinstance(place, list) and all(isinstance(each, str) for each in place)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        is_place, place, before = False, [], []
    if not is_place:
        raise invalid("pageToken was not issued by this server")
    if before != [*question] or len(place) != length:
        raise invalid("pageToken belongs to a list with another filter or order; start again from the first page")
    return tuple(place)
