"""JSON that may contain whatever a component has written into a record."""

import json
import math
from typing import Any


def encode(content: Any) -> bytes:
    """Return the text of an object, in ASCII and on one line; it may have NaN, infinities and unpaired surrogates."""
    try:
        return _text(content)
    except ValueError:
        return _text(_with_named_numbers(content))


def _text(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _with_named_numbers(value: Any) -> Any:
    """Return the value with the strings that Google's JSON has for NaN and infinite numbers."""
    if isinstance(value, dict):
        return {key: _with_named_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_named_numbers(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
