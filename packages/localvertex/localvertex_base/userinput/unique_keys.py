"""Refuses keys that a file gives twice, of which JSON and YAML readers silently keep the last."""

import json
import re
from typing import Any, NoReturn

from localvertex_base.userinput.spelling import quote

_MERGE = "tag:yaml.org,2002:merge"
_STRING_OR_BRACE = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]', re.DOTALL)


class RepeatedKey(Exception):
    """A mapping has one key twice; the message names it and its lines."""

    def __init__(self, key: str, first: int, second: int) -> None:
        lines = f"line {first}" if first == second else f"lines {first} and {second}"
        super().__init__(f"the key {quote(key)} twice in one mapping, in {lines}")


class _Repeated(Exception):
    """Somewhere in a JSON text a key is repeated; the decoder does not report where."""


def load_json(data: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        RepeatedKey: An object has a key twice.
        ValueError: It is not JSON; NaN and Infinity are not.
        RecursionError: It is nested too deeply.
    """
    try:
        return json.loads(data, object_pairs_hook=_object, parse_constant=_no_number)
    except _Repeated:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
        raise _first_repeated(text) from None


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number in JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Repeated
    return made


def _first_repeated(text: str) -> RepeatedKey:
    """Return the first repeated key of a text that has one."""
    open_objects: list[dict[str, int]] = []
    line, read_to = 1, 0
    for token in _STRING_OR_BRACE.finditer(text):
        line += text.count("\n", read_to, token.start())
        read_to = token.start()
        if token[0] == "{":
            open_objects.append({})
        elif token[0] == "}":
            open_objects.pop()
        elif token[2]:
            key = json.loads(token[1], strict=False)
            if key in open_objects[-1]:
                return RepeatedKey(key, open_objects[-1][key], line)
            open_objects[-1][key] = line
    raise AssertionError("unreachable: the decoder has seen a repeated key")


class UniqueKeys:
    """Mixin for a PyYAML loader: refuses a key that a mapping has twice; a merged (<<) key may be given again."""

    def __init__(self, stream: Any) -> None:
        """Load a stream, as every PyYAML loader does."""
        super().__init__(stream)  # type: ignore[call-arg]
        # Keep the nodes, too: Python may reuse the id of a freed node for a node of the next document.
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


def _refuse_repeated(node: Any) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if key.tag == _MERGE or not isinstance(key.value, str):
            continue
        line = key.start_mark.line + 1
        if (key.tag, key.value) in lines:
            raise RepeatedKey(key.value, lines[key.tag, key.value], line)
        lines[key.tag, key.value] = line
