"""Parameter values: their types, and integers that stay integers.

The compiled file and the service carry numbers as doubles (protobuf Struct), `replica_count` arrives as `1.0`.
"""

import json
import math
from typing import Any

from compiled.spec import ParameterType

MAX_EXACT = 2**53
"""Above this a double is not an exact integer any more."""


def restore_integers(value: Any) -> Any:
    """The value with integral floats in it turned back into integers, at any depth."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    if isinstance(value, list):
        return [restore_integers(item) for item in value]
    if isinstance(value, dict):
        return {key: restore_integers(item) for key, item in value.items()}
    return value


def convert(value: Any, kind: ParameterType) -> Any:
    """A value as its declared type has it: NUMBER_INTEGER an int, NUMBER_DOUBLE a float, the rest unchanged.

    Raises:
        ValueError: the value is not of the type; the text says what was found.
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
        # A Dict parameter may be given a list and the other way round: kfp maps several Python types to STRUCT.
        if {type(value), expected} == {list, dict}:
            return restore_integers(value)
        raise ValueError(f"found {shown(value)}")
    return restore_integers(value)


def convert_number(value: Any, kind: ParameterType) -> int | float:
    """A number of the declared type; a string of digits, as placeholders leave it, is read."""
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
    """A value as it stands in a command: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def shown(value: Any, limit: int = 80) -> str:
    """A value for messages and tables, shortened."""
    text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[: limit - 3] + "..."
