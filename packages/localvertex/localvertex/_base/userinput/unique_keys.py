"""Refuses what JSON and YAML readers take without a word: keys given twice, and numbers that take minutes to read."""

import json
from collections import Counter
from typing import Any, NoReturn

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import quote

_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MAX_DIGITS = 4300
"""The limit of Python's decimal integers."""


class RepeatedKey(Exception):
    """A mapping has one key twice; the message names it."""

    def __init__(self, key: str, lines: str = "") -> None:
        super().__init__(f"the key {quote(key)} twice in one mapping{lines}")


def load_json(data: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        RepeatedKey: An object has a key twice.
        ValueError: It is not JSON; NaN and Infinity are not.
        RecursionError: It is nested too deeply.
    """
    return json.loads(data, object_pairs_hook=_object, parse_constant=_no_number)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number in JSON")


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RepeatedKey(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return made


class UniqueKeys:
    """Mixin for a PyYAML loader: refuses a key that a mapping has twice; a merged (<<) key may be given again.

    It also refuses numbers of more than `_MAX_DIGITS` characters.
    """

    def __init__(self, stream: Any) -> None:
        """Load a stream, as every PyYAML loader does."""
        super().__init__(stream)  # type: ignore[call-arg]
        # Keep the nodes as well: Python may reuse the id of a freed node for a node of the next document.
        self._checked: dict[int, Any] = {}

    def flatten_mapping(self, node: Any) -> None:
        """Check a mapping before the keys of its merges are put among its own.

        Raises:
            RepeatedKey: It has a key twice.
        """
        # A node that several others merge is flattened again, with the keys of its own merges in it by then.
        if id(node) not in self._checked:
            self._checked[id(node)] = node
            _refuse_repeated(node)
        super().flatten_mapping(node)  # type: ignore[misc]

    def construct_scalar(self, node: Any) -> Any:
        """Check the length of a number before it is computed: PyYAML takes quadratic time for 59:59:...

        Raises:
            ValueError: It is too long.
        """
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            raise ValueError(f"line {node.start_mark.line + 1} has a number of {len(node.value)} characters")
        return super().construct_scalar(node)  # type: ignore[misc]


def _refuse_repeated(node: Any) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if key.tag == _MERGE or not isinstance(key.value, str):
            continue
        line = key.start_mark.line + 1
        if (key.tag, key.value) in lines:
            raise RepeatedKey(key.value, f", in lines {lines[key.tag, key.value]} and {line}")
        lines[key.tag, key.value] = line
