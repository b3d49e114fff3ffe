"""Statistics of a dataset's images, collected while prepare reads them and stored next to the records."""

from typing import Any

import numpy as np

from trainer.data.images import Pixels
from trainer.data.sources.remarks import OTHER, Remarks, first_names
from trainer.data.splits import SPLITS

_MAX_NAMED_BAD_FILES = 200
"""Number of bad files that are named; all of them are counted."""
_SIZE_EDGES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Upper bounds in pixels of the histogram of the originals' longer edge."""


class Statistics:
    """Counts and sums that grow image by image."""

    def __init__(self, class_names: list[str], remarks: Remarks) -> None:
        self.class_names = class_names
        self.remarks = remarks
        """What the source skipped; what is remarked on single images is added."""
        self.num_bad_files = 0
        self.bad_files: list[tuple[str, str]] = []
        self._num_pixels = 0
        # Integer sums are exact, so they do not depend on the order.
        self._sum = np.zeros(3, np.uint64)
        self._sum_of_squares = np.zeros(3, np.uint64)
        self._longer_edges = [0] * (len(_SIZE_EDGES) + 1)
        self._smallest = [0, 0]
        self._largest = [0, 0]
        self._counts = {name: dict.fromkeys(SPLITS, 0) for name in class_names}

    def add_image(self, original_size: tuple[int, int], pixels: Pixels) -> None:
        """Count one good image.

        Args:
            original_size: Width and height in pixels before resizing.
            pixels: Values uint8 [S, S, 3] after resizing.
        """
        flat = pixels.reshape(-1, 3).astype(np.uint64)
        self._num_pixels += len(flat)
        self._sum += flat.sum(axis=0)
        self._sum_of_squares += (flat * flat).sum(axis=0)
        self._longer_edges[int(np.searchsorted(_SIZE_EDGES, max(original_size), side="left"))] += 1
        size = list(original_size)
        if not any(self._smallest) or size[0] * size[1] < self._smallest[0] * self._smallest[1]:
            self._smallest = size
        if size[0] * size[1] > self._largest[0] * self._largest[1]:
            self._largest = size

    def add_bad_file(self, name: str, reason: str) -> None:
        """Count one image that could not be used."""
        self.num_bad_files += 1
        if len(self.bad_files) < _MAX_NAMED_BAD_FILES:
            self.bad_files.append((name, reason))

    def describe(self) -> list[str]:
        """Return a phrase per kind of what was skipped or used only in part, for a single line."""
        bad = [f"{name}: {reason}" for name, reason in self.bad_files]
        skipped = (
            [f"bad files, skipped: {self.num_bad_files:,} ({first_names(bad, self.num_bad_files)})"] if bad else []
        )
        return skipped + self.remarks.describe()

    def count(self, split: str, label: int) -> None:
        """Count an example of a class in a split."""
        self._counts[self.class_names[label]][split] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON; mean and standard deviation are of red, green and blue in 0 to 255."""
        mean = self._sum / max(self._num_pixels, 1)
        variance = self._sum_of_squares / max(self._num_pixels, 1) - mean**2
        return {
            "counts": self._counts,
            "mean_rgb": [round(float(value), 4) for value in mean],
            "stddev_rgb": [round(float(value), 4) for value in np.sqrt(np.maximum(variance, 0))],
            "original_longer_edge": {"upper_bounds_pixels": list(_SIZE_EDGES), "counts": self._longer_edges},
            "smallest_original": self._smallest,
            "largest_original": self._largest,
            "num_bad_files": self.num_bad_files,
            "bad_files": [list(pair) for pair in self.bad_files],
            "num_ignored_files": self.remarks.count(OTHER),
            "remarks": self.remarks.to_list(),
        }
