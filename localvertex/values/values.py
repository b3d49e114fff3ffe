"""Parameter values: their types, and integers that stay integers.

The compiled file and the service store numbers as doubles (protobuf Struct), so `replica_count` arrives as `1.0`.
"""

import json
import math
from typing import Any

from compiled.spec import ParameterType

MAX_EXACT = 2**53
"""Largest range in which a double is an exact integer."""


def restore_integers(value: Any) -> Any:
    """Return the value with integral floats turned back into integers, at any depth."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    if isinstance(value, list):
        return [restore_integers(item) for item in value]
    if isinstance(value, dict):
        return {key: restore_integers(item) for key, item in value.items()}
    return value


def convert(value: Any, kind: ParameterType) -> Any:
    """Convert a value to its declared type: NUMBER_INTEGER to int, NUMBER_DOUBLE to float, others unchanged.

    Raises:
        ValueError: The value is not of the type; the text contains what was found.
    """
    if value is None or kind in (ParameterType.TASK_FINAL_STATUS, ParameterType.TASK_CONFIG):
        return value
    if kind in (ParameterType.NUMBER_INTEGER, ParameterType.NUMBER_DOUBLE):
        return convert_number(value, kind)
    expected = {
        ParameterType.STRING: str,
        ParameterType.BOOLEAN: bool,
        ParameterType.LIST: list,
        ParameterType.STRUCT: dict,
    }[kind]
    if not isinstance(value, expected):
        # A Dict parameter accepts a list and vice versa: kfp maps several Python types to STRUCT.
        if {type(value), expected} == {list, dict}:
            return restore_integers(value)
        raise ValueError(f"found {shown(value)}")
    return restore_integers(value)


def convert_number(value: Any, kind: ParameterType) -> int | float:
    """Convert to a number of the declared type; parse a string, which placeholders may produce."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"found {shown(value)}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"found {shown(value)}")
    if kind is ParameterType.NUMBER_DOUBLE:
        return float(value)
    if int(value) != value:
        raise ValueError(f"found {shown(value)}")
    return int(value)


def as_text(value: Any) -> str:
    """Return a value as text for a command: strings as they are, other types as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def shown(value: Any, limit: int = 80) -> str:
    """Return a value for messages and tables, shortened to `limit` characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[: limit - 3] + "..."
