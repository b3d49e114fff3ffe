"""The Value message, in which kfp 1.8 writes constants and the defaults of a pipeline's parameters."""

from typing import Any

from localvertex._base.compiled.fields import Fields

_KINDS = {"intValue": int, "doubleValue": float, "stringValue": str}


def read_value(fields: Fields) -> Any:
    """Return the value of a Value message, None where it has none; JSON has its 64-bit integers as text."""
    kinds = [kind for kind in _KINDS if fields.has(kind)]
    value = fields.any(kinds[0]) if len(kinds) == 1 else None
    try:
        return _KINDS[kinds[0]](value)
    except (IndexError, OverflowError, TypeError, ValueError):
        fields.note(f"expected one value under {', '.join(_KINDS)}")
        return None
