"""Mean and standard deviation of a prepared image's channels, from the sums in its row."""

import math
from dataclasses import dataclass

from trainer.data.stored.records import Figures


@dataclass(frozen=True, kw_only=True)
class Channels:
    """Statistics of the red, green and blue of an image, from 0 to 255."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    """Standard deviations."""


def channels_of(figures: Figures, image_size: int) -> Channels:
    """Return the statistics of an image that was prepared at this size."""
    number = image_size * image_size
    pairs = list(zip(figures.pixel_sums, figures.pixel_sums_of_squares, strict=True))
    return Channels(
        means=tuple(total / number for total, _ in pairs),
        # Integers are subtracted, because the difference of floats would not be exact.
        deviations=tuple(math.sqrt(squares * number - total * total) / number for total, squares in pairs),
    )
