"""List filters in the language of AIP-160 (google.aip.dev/160), as far as users of the SDK need it.

`display_name="x" AND state="PIPELINE_STATE_RUNNING"`, `labels.team=vision`, `labels:team`,
`create_time>"2026-01-01T00:00:00Z"`, `display_name="train-*"`, `display_name:"*step*"`, OR, NOT, `-`
and parentheses. OR binds tighter than AND, as the standard requires. `in_context("x")` is `in_context:"x"`, and
`parent_contexts:"x","y"` finds both, as Vertex ML Metadata needs them.
"""

import fnmatch
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import camel
from localvertex.api.rest.errors import ApiError, invalid

Test = Callable[[JsonObject], bool]

_TOKEN = re.compile(
    r"""\s*(?: (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*') | (?P<operator><=|>=|!=|=|<|>|:) | (?P<mark>[()])"""
    r"""| (?P<word>[^\s()<>=!:"']+) )""",
    re.VERBOSE,
)

_MAX_DEPTH = 40


def parse(filter_text: str, known: set[str]) -> Test:
    """Compile a filter to a test of resources.

    Args:
        filter_text: The filter; every resource passes an empty one.
        known: The names of all fields of the resources, in camelCase.

    Raises:
        ApiError: The filter is malformed, or names an unknown field.
    """
    return parse_with_fields(filter_text, known)[0]


def parse_with_fields(filter_text: str, known: set[str]) -> tuple[Test, set[tuple[str, ...]]]:
    """Compile a filter as `parse` does; return also the fields that the test looks at, each with keys of maps."""
    if not filter_text.strip():
        return lambda _: True, set()
    reader = Reader(filter_text, known)
    test = reader.all_of()
    if reader.tokens:
        raise reader.error(f"unexpected {reader.tokens[0][1]!r}")
    return test, reader.fields


class Reader:
    """Reads one filter, token by token."""

    def __init__(self, filter_text: str, known: set[str]) -> None:
        self._text, self._known, self._depth = filter_text, known, 0
        self.tokens: list[tuple[str, str]] = []
        self.fields: set[tuple[str, ...]] = set()
        position = 0
        while filter_text[position:].strip():
            match = _TOKEN.match(filter_text, position)
            if match is None:
                raise self.error(f"cannot read {filter_text[position:].strip()[:20]!r}")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            position = match.end()

    def error(self, reason: str) -> ApiError:
        """Build the error that refuses the filter."""
        return invalid(f'filter {self._text[:200]!r}: {reason}; expected e.g. display_name="x" AND labels.a=b')

    def take(self, *values: str) -> bool:
        """Consume the next token if it is one of these; return whether it was."""
        if self.tokens and self.tokens[0][0] != "text" and self.tokens[0][1] in values:
            self.tokens.pop(0)
            return True
        return False

    def all_of(self) -> Test:
        """Read terms with AND, or nothing, between them."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.error("nested too deeply")
        tests = [self.any_of()]
        while self.take("AND") or (self.tokens and self.tokens[0][1] != ")"):
            tests.append(self.any_of())
        self._depth -= 1
        return lambda resource: all(test(resource) for test in tests)

    def any_of(self) -> Test:
        """Read terms with OR between them."""
        tests = [self.term()]
        while self.take("OR"):
            tests.append(self.term())
        return lambda resource: any(test(resource) for test in tests)

    def term(self) -> Test:
        """Read a comparison, a group in parentheses, or NOT before one."""
        negated = self.take("NOT", "-")
        if not negated and self.tokens and self.tokens[0][0] == "word" and self.tokens[0][1].startswith("-"):
            negated, self.tokens[0] = True, ("word", self.tokens[0][1][1:])
        if self.take("("):
            test = self.all_of()
            if not self.take(")"):
                raise self.error("')' is missing")
        else:
            test = self.comparison()
        return (lambda resource: not test(resource)) if negated else test

    def comparison(self) -> Test:
        """Read `field operator value`, or `function("value")`, which is true when the field has the value."""
        if [each[0] for each in self.tokens[:4]] == ["word", "mark", "text", "mark"]:
            self.tokens[:4] = [self.tokens[0], ("operator", ":"), self.tokens[2]]
        if len(self.tokens) < 3 or [each[0] for each in self.tokens[:2]] != ["word", "operator"]:
            raise self.error("expected field, operator and value")
        (_, field), (_, operator), (kind, value) = (self.tokens.pop(0) for _ in range(3))
        if kind not in ("text", "word"):
            raise self.error(f"expected a value after {field}{operator}, found {value!r}")
        values = [_unescape(value[1:-1]) if kind == "text" else value]
        while operator == ":" and [each[0] for each in self.tokens[:2]] == ["word", "text"] and self.take(","):
            values.append(_unescape(self.tokens.pop(0)[1][1:-1]))
        first, *rest = field.split(".")
        path = [camel(first), *rest]
        self.fields.add(tuple(path))
        if path[0] not in self._known:
            raise self.error(f"unknown field {field!r}")
        return lambda resource: any(_holds(_look_up(resource, path), operator, each) for each in values)


def _look_up(resource: JsonObject, path: list[str]) -> Any:
    """Return the value at a path, None when it has none.

    Args:
        resource: The resource in camelCase.
        path: Fields in snake_case or camelCase, and keys of maps, which may have dots in them.
    """
    value: Any = resource
    for index, part in enumerate(path):
        if not isinstance(value, dict):
            return None
        if 0 < index < len(path) - 1 and (whole := ".".join(path[index:])) in value:
            return value[whole]
        value = value.get(part, value.get(camel(part)))
    return value


def _holds(actual: Any, operator: str, wanted: str) -> bool:
    """Return whether the comparison of a field's value with the filter's is true."""
    if operator == ":":
        return _has(actual, wanted)
    if operator == "!=":
        return not _holds(actual, "=", wanted)
    if actual is None:
        return operator == "=" and wanted == ""
    left, right = _comparable(actual, wanted, operator)
    if operator == "=":
        return left == right or (
            isinstance(left, str) and "*" in wanted and fnmatch.fnmatchcase(left, _literal(wanted))
        )
    result: bool = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    return result


def _has(actual: Any, wanted: str) -> bool:
    """Evaluate the operator `:`: presence, a key of a map, an element of a list, or a part of a string.

    With `*` in it the value is a pattern of the whole string, as in the service's example `display_name:"*step*"`.
    """
    if wanted == "*":
        return actual not in (None, "", {}, [])
    if isinstance(actual, dict | list):
        return wanted in actual
    if actual is None:
        return False
    text, wanted = _as_text(actual).lower(), wanted.lower()
    return fnmatch.fnmatchcase(text, _literal(wanted)) if "*" in wanted else wanted in text


def _unescape(text: str) -> str:
    """Remove the backslashes of a text in quotation marks."""
    return re.sub(r"\\(.)", r"\1", text)


def _literal(pattern: str) -> str:
    """Escape what fnmatch treats as special; in AIP-160 only `*` is."""
    return re.sub(r"([\[?])", r"[\1]", pattern)


def _as_text(value: Any) -> str:
    """Format a value as filters spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _comparable(actual: Any, wanted: str, operator: str) -> tuple[Any, Any]:
    """Convert both to times, to numbers, or to strings; strings of digits are equal only if all their digits are."""
    for read in (_as_time,) if operator == "=" and isinstance(actual, str) else (_as_time, float):
        try:
            return read(_as_text(actual)), read(wanted)
        except ValueError:
            continue
    return _as_text(actual), wanted


def _as_time(text: str) -> datetime:
    """Read an RFC 3339 time or date, in UTC when it names no zone.

    Raises:
        ValueError: It is neither.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
