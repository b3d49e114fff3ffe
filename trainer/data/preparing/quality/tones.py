"""Brightness and contrast of a prepared image, from the sums that its row has."""

import math
from dataclasses import dataclass

from trainer.data.stored.records import Figures


@dataclass(frozen=True, kw_only=True)
class Tones:
    """Of red, green and blue, from 0 to 255."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    """Standard deviations."""


def tones_of(figures: Figures, image_size: int) -> Tones:
    """Return the tones of an image that was prepared at this size."""
    number = image_size * image_size
    pairs = list(zip(figures.pixel_sums, figures.pixel_sums_of_squares, strict=True))
    return Tones(
        means=tuple(total / number for total, _ in pairs),
        # Subtracted as integers: their difference is exact, that of floats is not.
        deviations=tuple(math.sqrt(squares * number - total * total) / number for total, squares in pairs),
    )
