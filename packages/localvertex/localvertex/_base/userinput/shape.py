"""Whether decoded JSON has the shape that a program relies on: a user may have edited it, or a disk damaged it.

A shape is a type, a set of texts, a pattern of a whole text, a range of integers, a list `[items]`, a list of fixed
length `(first, second)`, an object `{str: values}`, or an object with fields: `name!` must be there, and `name?` may
be None.
"""

import re
from collections.abc import Iterator
from types import UnionType
from typing import Any

from localvertex._base.userinput.spelling import quote

LARGEST = 1e15
"""Limit of numbers; a larger number is damage."""
NUMBER, OPTIONAL_NUMBER = int | float, int | float | None
"""The first one is finite; a measured value may be NaN."""


class Wrong(ValueError):
    """A value does not have its shape; `{place}` in the text becomes its path.

    The path is put together only here, because a large record has millions of values.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str | int] = []
        """Names and indices that lead to the value, the innermost first."""

    def __str__(self) -> str:
        steps = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in reversed(self.path)]
        return str(self.args[0]).replace("{place}", "".join(steps).lstrip(".")[:200] or "the record")


def check(value: Any, shape: Any) -> None:
    """Check a value.

    Raises:
        Wrong: It does not have the shape.
    """
    expected = _type(shape)
    is_other = isinstance(value, bool) and expected is not bool
    if is_other or not isinstance(value, expected):
        raise Wrong(f"{{place}} has the wrong type: {type(value).__name__}")
    is_text = isinstance(shape, re.Pattern)
    if not shape.fullmatch(value) if is_text else isinstance(shape, frozenset | range) and value not in shape:
        raise Wrong(f"{{place}}: unknown value {quote(value)}")
    if (expected is NUMBER or isinstance(value, int)) and not -LARGEST < value < LARGEST:
        raise Wrong(f"{{place}}: expected a number from -{LARGEST:g} to {LARGEST:g}, found {str(value)[:40]}")
    if not isinstance(value, list | dict):
        return
    for key, inner, part in _parts(value, shape):
        if type(part) is inner is not int:
            # The most frequent case, without a call.
            continue
        try:
            check(part, inner)
        except Wrong as wrong:
            wrong.path.append(key)
            raise


def _type(shape: Any) -> Any:
    if isinstance(shape, type | UnionType):
        return shape
    if isinstance(shape, range):
        return int
    return dict if isinstance(shape, dict) else str if isinstance(shape, frozenset | re.Pattern) else list


def _parts(value: Any, shape: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the name or the index, the shape and the value of each part.

    Raises:
        Wrong: A part is missing.
    """
    if isinstance(shape, list):
        yield from ((index, shape[0], each) for index, each in enumerate(value))
    elif isinstance(shape, tuple):
        if len(value) != len(shape):
            raise Wrong(f"{{place}} has {len(value)} items instead of {len(shape)}")
        yield from zip(range(len(value)), shape, value, strict=True)
    elif isinstance(shape, dict) and str in shape:
        yield from ((name, shape[str], each) for name, each in value.items())
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.rstrip("!?")
            if name in value and not (key.endswith("?") and value[name] is None):
                yield name, inner, value[name]
            elif key.endswith("!") and name not in value:
                wrong = Wrong("{place} is missing")
                wrong.path.append(name)
                raise wrong
