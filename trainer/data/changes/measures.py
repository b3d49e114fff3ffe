"""Histograms of brightness, contrast and size with fixed bins, so the memory does not grow with the images."""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MEASURES = ("brightness", "contrast", "size")
"""Mean of all channels (0 to 255), root mean square of their standard deviations, longer edge of the original."""
UNITS = ("0 to 255", "0 to 127", "longer edge in pixels")
NUM_BINS = 128
_BINS_PER_OCTAVE = 8
Counts = npt.NDArray[np.int64]
"""Numbers of images by measure and bin."""


def bins(line: Mapping[str, Any], num_pixels: int) -> tuple[int, ...]:
    """Return the bin of each measure of an image.

    Args:
        line: A line of the list of images.
        num_pixels: Number of pixels of a prepared image.
    """
    sums, squares = line["pixel_sums"], line["pixel_sums_of_squares"]
    brightness = sum(sums) / (3 * num_pixels)
    variance = sum(square * num_pixels - total * total for total, square in zip(sums, squares, strict=True))
    contrast = math.sqrt(max(0, variance) / 3) / num_pixels
    octaves = math.log2(max(1, line["width"], line["height"]))
    found = (brightness / 2, contrast, octaves * _BINS_PER_OCTAVE)
    return tuple(min(NUM_BINS - 1, max(0, int(value))) for value in found)


def value_of(measure: int, number: float) -> float:
    """Return the value in the middle of a bin, with the unit of the measure."""
    middle = number + 0.5
    return (2 * middle, middle, 2 ** (middle / _BINS_PER_OCTAVE))[measure]


class Distributions:
    """Histograms per class."""

    def __init__(self) -> None:
        self._of: dict[str, array[int]] = {}

    def add(self, label: str, found: Sequence[int]) -> None:
        """Count an image, given the bin of each measure."""
        if (counts := self._of.get(label)) is None:
            counts = self._of[label] = array("q", bytes(8 * NUM_BINS * len(MEASURES)))
        for measure, number in enumerate(found):
            counts[measure * NUM_BINS + number] += 1

    def of(self, label: str) -> Counts:
        """Return the histograms of a class; without images, all are zero."""
        found = self._of.get(label)
        return (np.zeros(len(MEASURES) * NUM_BINS, np.int64) if found is None else np.asarray(found)).reshape(
            len(MEASURES), NUM_BINS
        )

    def overall(self) -> Counts:
        """Return the histograms of all classes together."""
        return sum(map(self.of, self._of), np.zeros((len(MEASURES), NUM_BINS), np.int64))

    def num_images(self, label: str) -> int:
        """Return the number of images of a class."""
        return int(self.of(label)[0].sum())

    def labels(self) -> set[str]:
        """Return the classes with images."""
        return set(self._of)
