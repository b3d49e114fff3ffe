"""Mean and standard deviation of the channels of prepared images, from the sums in their rows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Channels:
    """Statistics of red, green and blue, from 0 to 255."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    """Standard deviations."""


def channels_of(sums: Iterable[int], sums_of_squares: Iterable[int], number: int) -> Channels:
    """Return the statistics of a number of pixels, from the sums of their channels."""
    pairs = list(zip(sums, sums_of_squares, strict=True))
    return Channels(
        means=tuple(total / number for total, _ in pairs),
        # Integers are subtracted, because the difference of floats would not be exact.
        deviations=tuple(math.sqrt(squares * number - total * total) / number for total, squares in pairs),
    )
