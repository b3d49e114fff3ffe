"""JSON that may contain whatever a component has written into a record."""

import json
import math
from typing import Any

from localvertex._base.nested import changed


def encode(content: Any) -> bytes:
    """Return the text of an object, in ASCII and on one line; it may have NaN, infinities and unpaired surrogates."""
    try:
        return _text(content)
    except ValueError:
        return _text(changed(content, _named_number))


def _text(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":"), default=str).encode()


def _named_number(value: Any) -> Any:
    """Return the string that Google's JSON has for NaN and infinite numbers; other values as they are."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
