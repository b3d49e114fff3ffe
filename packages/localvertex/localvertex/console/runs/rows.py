"""Rows of runs as the page lists them: filtered, ordered by any field, metric or parameter, and split into pages.

The answer has what the columns of the list need, from all rows that pass the filter: the parameters that differ, and
of each pipeline the smallest and the largest value of each metric, by which the page marks the best.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import camel, closest
from localvertex.api.rest import filters
from localvertex.api.rest.errors import invalid
from localvertex.console.runs.row import COLUMNS, EMPTY, Row, is_number

_CAMEL = {name: camel(name) for name in EMPTY}

_DEFAULT_SIZE, _MAX_SIZE = 100, 1000


class Pages:
    """Builds the pages of a list; what its columns need is computed again only when the rows have changed."""

    def __init__(self) -> None:
        self._seen = list[Row](), _columns([])

    def page(self, rows: list[Row], query: Mapping[str, str]) -> JsonObject:
        """Return one page of the rows that pass a filter, by default the newest first.

        Args:
            rows: All rows.
            query: `filter`, `order_by` (for example `metrics.accuracy desc`), `page_size` and `page_token`.

        Raises:
            ApiError: A value of the query is wrong.
        """
        size, text = _size(query.get("page_size", "")), query.get("filter", "")
        test, used = filters.parse_with_fields(text, {*_CAMEL.values()})
        passed = (
            [each for each in rows if test({_CAMEL[name]: value for name, value in each.items()})] if text else rows
        )
        found = _in_order(passed, query.get("order_by") or "create_time desc", query.get("page_token", ""))
        # Requests of other threads may have other filters.
        seen = self._seen
        if passed != seen[0]:
            self._seen = seen = passed, _columns(passed)
        names, shown = seen[1]["parameters"], [row for _, row in found[:size]]
        return {
            "runs": [row | {"parameters": {n: v for n, v in row["parameters"].items() if n in names}} for row in shown],
            "next_page_token": json.dumps(found[size - 1][0]) if len(found) > size else "",
            "total_size": len(passed),
            "pipelines": sorted({each["pipeline"] for each in rows if each["pipeline"]}),
            "columns": COLUMNS,
            "unknown": [] if passed else _unknown(rows, used),
            **seen[1],
        }


def _unknown(rows: list[Row], used: set[tuple[str, ...]]) -> list[JsonObject]:
    """Return the keys in a filter that no row has, such as a metric's name, each with the nearest that rows have."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for field, *keys in used:
        if keys:
            wanted[".".join(keys)].add(field)
    found = []
    for name, fields in sorted(wanted.items()):
        known = {key for row in rows for each in fields for key in row[each]}
        if not known & {name, name.partition(".")[0]}:
            found.append({"name": name, "fields": sorted(fields), "nearest": "".join(closest(name, sorted(known)))})
    return found


def _in_order(rows: list[Row], text: str, token: str) -> list[tuple[list[Any], Row]]:
    """Return the rows with their places, after the place of the last row of the page before; that row may be gone.

    Raises:
        ApiError: Rows have no such field, or the token is not one of this order.
    """
    field, is_descending = text.removesuffix(" desc"), text.endswith(" desc")
    head, _, key = field.partition(".")
    if head not in EMPTY or bool(key) is not isinstance(EMPTY[head], dict):
        raise invalid(f"order_by: unknown field {field[:100]!r}; expected e.g. create_time or metrics.accuracy desc")

    def place(row: Row) -> list[Any]:
        value = row[head].get(key) if key else row[head]
        pair = [value, ""] if is_number(value) else [0, str(value)]
        # Rows without a value come last in both directions, texts after numbers.
        return [(value is None) is not is_descending, bool(pair[1]), *pair, row["create_time"] or "", row["id"]]

    found = sorted(((place(each), each) for each in rows), key=lambda each: each[0], reverse=is_descending)
    try:
        last = json.loads(token) if token else None
        return [each for each in found if last is None or (each[0] != last and (each[0] < last) is is_descending)]
    except (ValueError, TypeError, RecursionError):
        raise invalid(f"page_token {token[:100]!r}: expected the next_page_token of the page before") from None


def _columns(rows: list[Row]) -> JsonObject:
    """Return the parameters that differ, numbers first, and the ranges of metrics by pipeline."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    ranges: defaultdict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        for name, value in row["parameters"].items():
            values[name].add(str(value))
        of = ranges[row["pipeline"]]
        for name, value in row["metrics"].items() if row["state"] not in ("FAILED", "CANCELLED") else ():
            low, high = of.get(name, (value, value))
            of[name] = min(low, value), max(high, value)
    differing = [name for name, found in values.items() if len(found) > 1]
    return {"parameters": sorted(differing, key=lambda name: (min(values[name]) > ":", name)), "ranges": ranges}


def _size(text: str) -> int:
    """Read the size of a page.

    Raises:
        ApiError: It is not a number.
    """
    if text and not (text.isdecimal() and len(text) < 16):
        raise invalid(f"page_size: expected a number from 1 to {_MAX_SIZE}, found {text[:50]!r}")
    return min(int(text or 0) or _DEFAULT_SIZE, _MAX_SIZE)
