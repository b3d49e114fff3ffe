"""List filters in the language of AIP-160 (google.aip.dev/160), as far as the SDK's users write them.

`display_name="x" AND state="PIPELINE_STATE_RUNNING"`, `labels.team=vision`, `labels:team`,
`create_time>"2026-01-01T00:00:00Z"`, `display_name="train-*"`, OR, NOT, `-` and parentheses.
OR binds tighter than AND, as the standard has it.
"""

import fnmatch
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from localvertex.serve.api.errors import ApiError, invalid
from localvertex.serve.api.messages import camel_case

Test = Callable[[dict[str, Any]], bool]

TOKEN = re.compile(
    r"""\s*(?: (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*') | (?P<operator><=|>=|!=|=|<|>|:) | (?P<mark>[()])"""
    r"""| (?P<word>[^\s()<>=!:"']+) )""",
    re.VERBOSE,
)

MAX_DEPTH = 40


def parse(filter_text: str, known: set[str]) -> Test:
    """The filter as a test of resources.

    Args:
        filter_text: Empty: everything passes.
        known: Names of the fields that resources have, in camelCase.

    Raises:
        ApiError: it is not understood, or names an unknown field.
    """
    if not filter_text.strip():
        return lambda _: True
    reader = Reader(filter_text, known)
    test = reader.all_of()
    if reader.tokens:
        raise reader.error(f"{reader.tokens[0][1]!r} is not expected there")
    return test


class Reader:
    """Reads one filter, token by token."""

    def __init__(self, filter_text: str, known: set[str]) -> None:
        self._text, self._known, self._depth = filter_text, known, 0
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while filter_text[place:].strip():
            match = TOKEN.match(filter_text, place)
            if match is None:
                raise self.error(f"{filter_text[place:].strip()[:20]!r} is not understood")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()

    def error(self, reason: str) -> ApiError:
        """The filter is refused."""
        return invalid(f'filter {self._text[:200]!r}: {reason}; expected for example display_name="x" AND labels.a=b')

    def take(self, *values: str) -> bool:
        """Whether one of these stands next; then it is taken."""
        if self.tokens and self.tokens[0][0] != "text" and self.tokens[0][1] in values:
            self.tokens.pop(0)
            return True
        return False

    def all_of(self) -> Test:
        """Terms with AND, or nothing, between them."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error("nested too deep")
        tests = [self.any_of()]
        while self.take("AND") or (self.tokens and self.tokens[0][1] != ")"):
            tests.append(self.any_of())
        self._depth -= 1
        return lambda resource: all(test(resource) for test in tests)

    def any_of(self) -> Test:
        """Terms with OR between them."""
        tests = [self.term()]
        while self.take("OR"):
            tests.append(self.term())
        return lambda resource: any(test(resource) for test in tests)

    def term(self) -> Test:
        """A comparison, a group in parentheses, or NOT before one."""
        negated = self.take("NOT", "-")
        if not negated and self.tokens and self.tokens[0][0] == "word" and self.tokens[0][1].startswith("-"):
            negated, self.tokens[0] = True, ("word", self.tokens[0][1][1:])
        if self.take("("):
            test = self.all_of()
            if not self.take(")"):
                raise self.error("a ')' is missing")
        else:
            test = self.comparison()
        return (lambda resource: not test(resource)) if negated else test

    def comparison(self) -> Test:
        """`field operator value`."""
        if len(self.tokens) < 3 or [each[0] for each in self.tokens[:2]] != ["word", "operator"]:
            raise self.error("field, operator and value expected")
        (_, field), (_, operator), (kind, value) = (self.tokens.pop(0) for _ in range(3))
        if kind not in ("text", "word"):
            raise self.error(f"a value expected after {field}{operator}, found {value!r}")
        if kind == "text":
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        first, *rest = field.split(".")
        path = [camel_case(first), *rest]
        if path[0] not in self._known:
            raise self.error(f"there is no field {field!r}")
        return lambda resource: holds(look_up(resource, path), operator, value)


def look_up(resource: dict[str, Any], path: list[str]) -> Any:
    """The value at a path; keys of maps as they are, fields in snake_case or camelCase. None when there is none."""
    value: Any = resource
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part, value.get(camel_case(part)))
    return value


def holds(actual: Any, operator: str, wanted: str) -> bool:
    """Whether a field's value compares like this with the filter's."""
    if operator == ":":
        return has(actual, wanted)
    if operator == "!=":
        return not holds(actual, "=", wanted)
    if actual is None:
        return operator == "=" and wanted == ""
    left, right = comparable(actual, wanted)
    if operator == "=":
        return left == right or (isinstance(left, str) and "*" in wanted and fnmatch.fnmatchcase(left, literal(wanted)))
    result: bool = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    return result


def has(actual: Any, wanted: str) -> bool:
    """The operator `:`: presence, a key of a map, an element of a list, or a part of a text."""
    if wanted == "*":
        return actual not in (None, "", {}, [])
    if isinstance(actual, dict | list):
        return wanted in actual
    return actual is not None and wanted.lower() in as_text(actual).lower()


def literal(pattern: str) -> str:
    """Only `*` is special in AIP-160."""
    return re.sub(r"([\[?])", r"[\1]", pattern)


def as_text(value: Any) -> str:
    """A value as filters spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def comparable(actual: Any, wanted: str) -> tuple[Any, Any]:
    """Both as times, as numbers, or as texts."""
    for read in (as_time, float):
        try:
            return read(as_text(actual)), read(wanted)
        except ValueError:
            continue
    return as_text(actual), wanted


def as_time(text: str) -> datetime:
    """An RFC 3339 time or date; UTC when it names no zone.

    Raises:
        ValueError: it is neither.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
