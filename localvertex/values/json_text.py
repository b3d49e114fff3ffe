"""Decoding JSON that others wrote: strict, and with one-line errors."""

import json
from typing import Any

from userinput.errors import UserError


def parse_json(text: str, place: str) -> Any:
    """Decoded JSON; duplicate keys and NaN are refused.

    Raises:
        UserError: with line and column.
    """
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise UserError(f"{place}: broken JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValueError as error:
        # An integer of thousands of digits, which Python does not convert.
        raise UserError(f"{place}: broken JSON: {str(error).partition(';')[0]}") from None
    except RecursionError:
        raise UserError(f"{place}: JSON nested too deep") from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses objects that hold a key twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise UserError(f"the key {twice!r} stands twice in one object")
    return result


def no_constant(name: str) -> Any:
    """Refuses NaN and Infinity, which are not JSON."""
    raise UserError(f"{name} is not a number in JSON")
