"""Numbers as the service carries them: doubles (protobuf Struct), which round integers beyond 2**53.

Source: kubeflow/pipelines#9976, where a maintainer names 2**53 - 1 as the largest integer of a parameter.
"""

from typing import Any

MAX_EXACT = 2**53
"""Larger doubles are not exact integers any more."""


def as_doubles(value: Any) -> Any:
    """Return the value with its larger integers as the nearest doubles, at any depth.

    Raises:
        OverflowError: An integer is beyond the range of doubles.
    """
    if isinstance(value, int) and abs(value) > MAX_EXACT:
        rounded = float(value)
        # As `restore_integers` returns it if the value arrives as a double.
        return rounded if abs(rounded) > MAX_EXACT else int(rounded)
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    return value


def _inexact_integers(value: Any) -> list[int]:
    """Return the integers in the value that a double does not hold exactly, at any depth."""
    if isinstance(value, list):
        return [number for item in value for number in _inexact_integers(item)]
    if isinstance(value, dict):
        return [number for item in value.values() for number in _inexact_integers(item)]
    is_rounded = isinstance(value, int) and abs(value) > MAX_EXACT and int(float(value)) != value
    return [value] if is_rounded else []


def rounding_warning(name: str, value: Any) -> str:
    """Return the warning about a parameter's value; empty when every integer in it is exact."""
    try:
        numbers = _inexact_integers(value)
    except OverflowError:
        return ""  # the conversion refuses it
    if not numbers:
        return ""
    found, rounded = numbers[0], int(float(numbers[0]))
    return f"{name}: {found} becomes {rounded}, as on Vertex AI, which stores numbers as doubles; pass it as text"
