"""Statistics of a dataset's images, computed from their rows alone and stored next to the records."""

import bisect
import operator
from collections.abc import Mapping
from typing import Any

from trainer.data.preparing.quality.kinds import channels_of
from trainer.data.preparing.rows import Row
from trainer.data.sources.remarks import OTHER, Remarks, first_names
from trainer.data.splits import SPLITS

_MAX_NAMED_BAD_FILES = 200
"""Number of bad files that are named; all are counted."""
_SIZE_EDGES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Upper bounds of the bins of the originals' longer edge, in pixels."""


class Statistics:
    """Counts and sums over rows, as exact integers."""

    def __init__(self, class_names: list[str], remarks: Remarks) -> None:
        self.class_names = class_names
        self.remarks = remarks
        """Remarks on the source and on single images."""
        self.num_bad_files = 0
        self.num_images = 0
        self.bad_files: list[tuple[str, str]] = []
        # Python's integers, which do not overflow.
        self._sums, self._sums_of_squares = [0, 0, 0], [0, 0, 0]
        self._longer_edges = [0] * (len(_SIZE_EDGES) + 1)
        self._smallest: tuple[int, ...] = ()
        self._largest: tuple[int, ...] = (0, 0, 0)

    def add(self, row: Row) -> None:
        """Count one image; the names of the first rows are kept."""
        if row.content_hash is None:
            self.num_bad_files += 1
            if len(self.bad_files) < _MAX_NAMED_BAD_FILES:
                self.bad_files.append((row.name, row.reason))
            return
        # Not as `Figures`, which take as long to make as all else here.
        figures = row.content
        for remark in row.remarks:
            self.remarks.add(remark, row.name)
        self.num_images += 1
        self._sums = list(map(operator.add, self._sums, figures["pixel_sums"]))
        self._sums_of_squares = list(map(operator.add, self._sums_of_squares, figures["pixel_sums_of_squares"]))
        width, height = figures["width"], figures["height"]
        self._longer_edges[bisect.bisect_left(_SIZE_EDGES, max(width, height))] += 1
        # Equal areas are ordered by width, so the order of the rows has no effect.
        area = (width * height, width, height)
        self._smallest = min(self._smallest or area, area)
        self._largest = max(self._largest, area)

    def describe(self) -> list[str]:
        """Return a phrase per kind of what was skipped or used only in part, for a single line."""
        bad = [f"{name}: {reason}" for name, reason in self.bad_files]
        skipped = (
            [f"bad files, skipped: {self.num_bad_files:,} ({first_names(bad, self.num_bad_files)})"] if bad else []
        )
        return skipped + self.remarks.describe()

    def to_dict(
        self, counts: Mapping[tuple[str, int], int], num_contents: int, num_ambiguous: int, image_size: int
    ) -> dict[str, Any]:
        """Return the figures, ready for JSON; mean and standard deviation are of red, green and blue in 0 to 255.

        Args:
            counts: (split, label) -> number of images.
            num_contents: Number of different images.
            num_ambiguous: Number of them in several classes.
            image_size: Height and width of the prepared images in pixels.
        """
        num_pixels = max(1, self.num_images * image_size * image_size)
        channels = channels_of(self._sums, self._sums_of_squares, num_pixels)
        return {
            "counts": {
                name: {split: counts.get((split, label), 0) for split in SPLITS}
                for label, name in enumerate(self.class_names)
            },
            "mean_rgb": [round(mean, 4) for mean in channels.means],
            "stddev_rgb": [round(deviation, 4) for deviation in channels.deviations],
            "original_longer_edge": {"upper_bounds_pixels": list(_SIZE_EDGES), "counts": self._longer_edges},
            "smallest_original": list(self._smallest[-2:] or (0, 0)),
            "largest_original": list(self._largest[-2:]),
            "num_bad_files": self.num_bad_files,
            "bad_files": [list(pair) for pair in self.bad_files],
            "num_ignored_files": self.remarks.counts[OTHER],
            "remarks": self.remarks.to_list(),
            "num_repeated_images": self.num_images - num_contents,
            "num_images_under_several_classes": num_ambiguous,
        }
