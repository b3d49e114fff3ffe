"""Numbers as the service carries them: doubles (protobuf Struct), which round integers beyond 2**53.

Source: kubeflow/pipelines#9976, where a maintainer names 2**53 - 1 as the largest integer of a parameter.
"""

from typing import Any

from localvertex._base.nested import changed, parts

MAX_EXACT = 2**53
"""Larger doubles are not exact integers any more."""


def as_doubles(value: Any) -> Any:
    """Return the value with its larger integers as the nearest doubles, at any depth.

    Raises:
        OverflowError: An integer is beyond the range of doubles.
    """

    def as_double(number: Any) -> Any:
        if not _is_large(number):
            return number
        rounded = float(number)
        # As `restore_integers` returns it if the value arrives as a double.
        return rounded if abs(rounded) > MAX_EXACT else int(rounded)

    return changed(value, as_double)


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > MAX_EXACT


def rounding_warning(name: str, value: Any) -> str:
    """Return the warning about a parameter's value; empty when every integer in it is exact."""
    try:
        numbers = [each for each in parts(value) if _is_large(each) and int(float(each)) != each]
    except OverflowError:
        return ""  # the conversion refuses it
    if not numbers:
        return ""
    found, rounded = numbers[0], int(float(numbers[0]))
    return f"{name}: {found} becomes {rounded}, as on Vertex AI, which stores numbers as doubles; pass it as text"
