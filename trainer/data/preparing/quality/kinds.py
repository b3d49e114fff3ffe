"""The kinds of warnings: their names, what they mean, and their thresholds."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote

LEAKS = "leaks"
NEAR_DUPLICATES = "near-duplicates"
LABEL_CONFLICTS = "label-conflicts"
_DARK = "dark"
_FLAT = "flat"
_TINY = "tiny"
_ODD_SHAPE = "odd-shape"
FEW_IMAGES = "few-images"
IMBALANCE = "imbalance"
SIMILAR_LABELS = "similar-labels"
_DARK_LEVEL = 48
_FLAT_DEVIATION = 5
_MAX_ENLARGEMENT = 8
_MAX_ASPECT = 3
MIN_IMAGES = 10
MAX_IMBALANCE = 100
TEXTS = {
    LEAKS: "validation and test images with a near-duplicate in another split",
    NEAR_DUPLICATES: "images with a near-duplicate in the same split",
    LABEL_CONFLICTS: "images in several classes",
    _DARK: f"dark images (mean plus two standard deviations below {_DARK_LEVEL} of 255)",
    _FLAT: f"images of nearly one colour (standard deviations below {_FLAT_DEVIATION} of 255)",
    _TINY: f"tiny images, enlarged more than {_MAX_ENLARGEMENT} times",
    _ODD_SHAPE: f"images of odd shape (one side more than {_MAX_ASPECT} times the other)",
    FEW_IMAGES: f"classes with fewer than {MIN_IMAGES} images (minimum recommended by Google)",
    IMBALANCE: f"classes with over {MAX_IMBALANCE} times the images of the smallest (maximum recommended by Google)",
    SIMILAR_LABELS: "classes whose names differ only in upper and lower case",
}
"""Name of each kind -> what is counted, in the order of the report."""
ADVICE = {
    LEAKS: "keep one image of each pair, or the accuracy is too high",
    NEAR_DUPLICATES: "keep one image of each pair, unless they are a series",
    LABEL_CONFLICTS: "keep each image in its right class",
    _DARK: "look at them and remove those that show nothing",
    _FLAT: "look at them and remove those that show nothing",
    _TINY: "use larger originals or a smaller image size",
    _ODD_SHAPE: "they are stretched to a square; crop them if that hides what they show",
    FEW_IMAGES: "add images or merge classes",
    IMBALANCE: "add images to the small classes",
    SIMILAR_LABELS: "write the label in one way if it is one class",
}
"""Name of each kind -> what to do."""


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


def parse_strict(names: str) -> frozenset[str]:
    """Return the names of a comma-separated list.

    Raises:
        UserError: One of them is not the name of a warning.
    """
    found = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in found if name not in TEXTS]:
        raise UserError(f"strict={quote(names)}: {quote(unknown[0])} is not a warning; use {', '.join(TEXTS)}")
    return frozenset(found)


def kinds_of(figures: Mapping[str, Any], image_size: int) -> Iterator[str]:
    """Yield the warnings about a single image, from its `Figures` by name."""
    sums, squares, number = figures["pixel_sums"], figures["pixel_sums_of_squares"], image_size**2
    # Roots are taken only of what may be odd: nearly no image is.
    is_dark = max(sums) < _DARK_LEVEL * number
    most_varied = max(square * number - total * total for total, square in zip(sums, squares, strict=True))
    if is_dark or most_varied <= (_FLAT_DEVIATION * number) ** 2:
        channels = channels_of(sums, squares, number)
        pairs = zip(channels.means, channels.deviations, strict=True)
        if max(mean + 2 * deviation for mean, deviation in pairs) < _DARK_LEVEL:
            yield _DARK
        if is_flat(channels):
            yield _FLAT
    shorter, longer = sorted((figures["width"], figures["height"]))
    if longer * _MAX_ENLARGEMENT < image_size:
        yield _TINY
    if longer > _MAX_ASPECT * shorter:
        yield _ODD_SHAPE


def is_flat(channels: Channels) -> bool:
    """Return whether an image has nearly one colour."""
    return max(channels.deviations) < _FLAT_DEVIATION
