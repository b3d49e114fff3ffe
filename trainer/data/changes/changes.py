"""Compares two datasets by their lists of images."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainer.data import dataset
from trainer.data.changes import images, lists, shifts
from trainer.data.changes.images import ADDED, KINDS, RELABELLED, REMOVED, RENAMED, REPLACED, Change, Leftovers
from trainer.data.changes.lists import Line
from trainer.data.changes.measures import Counts, Distributions, bins
from trainer.data.changes.shifts import ShiftTest
from trainer.data.dataset import Dataset

NUM_NAMED = 20
"""Number of images that are named per kind of change; all are counted."""
_NUM_MOVES = 50


@dataclass(frozen=True, kw_only=True)
class ClassChanges:
    """Changes of the usable images of a class."""

    name: str
    num_before: int
    num_now: int
    counts: Mapping[str, int]
    """ADDED, REMOVED, REPLACED, RENAMED -> number of images; of RELABELLED, those that came into the class."""
    num_left: int
    """Relabelled images that left the class."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All differences of two datasets."""

    before: Dataset
    now: Dataset
    classes: tuple[ClassChanges, ...]
    """Changes by the name of the class, of both datasets."""
    first: Mapping[str, list[Change]]
    """Kind of change -> the first images by name."""
    moves: list[tuple[str, str, int]]
    """Class before, class now, and number of images, in descending order."""
    newly_rejected: tuple[int, list[tuple[str, str]]]
    """Number of usable images that became unusable, and the first names with reasons."""
    comparisons: list[ShiftTest]
    """All tests, significant or not."""
    distributions: tuple[Counts, Counts]
    """Histograms of all images, before and now."""

    def count(self, kind: str) -> int:
        """Return the number of images of a kind of change."""
        return sum(each.counts[kind] for each in self.classes)

    @property
    def new_classes(self) -> list[str]:
        """Classes that had no image."""
        return [each.name for each in self.classes if not each.num_before]

    @property
    def vanished_classes(self) -> list[str]:
        """Classes that no longer have an image."""
        return [each.name for each in self.classes if not each.num_now]

    @property
    def shifts(self) -> list[ShiftTest]:
        """The tests that found a shift."""
        return [each for each in self.comparisons if each.is_shift]

    def metrics(self) -> dict[str, float]:
        """Return the figures as metrics."""
        return {
            "images_before": sum(each.num_before for each in self.classes),
            "images_now": sum(each.num_now for each in self.classes),
            **{f"images_{kind}": self.count(kind) for kind in KINDS},
            "images_newly_rejected": self.newly_rejected[0],
            "new_classes": len(self.new_classes),
            "vanished_classes": len(self.vanished_classes),
            "shifts": len(self.shifts),
            "largest_distance": round(max((each.distance for each in self.comparisons), default=0.0), 4),
        }


def between(previous_directory: str, new_directory: str) -> Changes:
    """Compare two datasets by their lists of images.

    Args:
        previous_directory: Local or on gs://.
        new_directory: Local or on gs://.

    Raises:
        UserError: One of them is not a dataset, or its list of images is missing or damaged.
    """
    before, now = dataset.load(previous_directory), dataset.load(new_directory)
    with images.leftovers() as leftovers:
        found = _Found(leftovers, before.image_size**2, now.image_size**2)
        for pair in lists.pairs(previous_directory, new_directory):
            found.add(*pair)
        leftovers.pair()
        return found.changes(before, now)


@dataclass(kw_only=True)
class _Sample:
    """The usable images of one dataset."""

    num_pixels: int
    """Number of pixels of a prepared image."""
    distributions: Distributions = field(default_factory=Distributions)

    def add(self, line: Line) -> tuple[int, ...]:
        """Count an image and return the bins of its measures."""
        found = bins(line, self.num_pixels)
        self.distributions.add(line["label"], found)
        return found


class _Found:
    """Collects the images of both lists."""

    def __init__(self, leftovers: Leftovers, num_pixels_before: int, num_pixels_now: int) -> None:
        self._leftovers = leftovers
        self._samples = (_Sample(num_pixels=num_pixels_before), _Sample(num_pixels=num_pixels_now))
        self._num_rejected, self._rejected = 0, list[tuple[str, str]]()

    def add(self, before: Line | None, now: Line | None) -> None:
        """Add the lines of a name, which is in one list or in both."""
        usable = [line if line and "content_hash" in line else None for line in (before, now)]
        found = [sample.add(line) if line else () for sample, line in zip(self._samples, usable, strict=True)]
        if usable[0] and usable[1] and _what(usable[0]) == _what(usable[1]):
            return
        if usable[0] and now and not usable[1]:
            self._num_rejected += 1
            if len(self._rejected) < NUM_NAMED:
                self._rejected.append((now["name"], now["reason"]))
        for is_now, (line, numbers) in enumerate(zip(usable, found, strict=True)):
            if line:
                self._leftovers.add(line["name"], *_what(line), numbers, is_now=bool(is_now))

    def changes(self, before: Dataset, now: Dataset) -> Changes:
        """Match the remaining images and return all changes."""
        new = Distributions()
        for label, numbers in self._leftovers.new_contents():
            new.add(label, numbers)
        previous, present = (sample.distributions for sample in self._samples)
        return Changes(
            before=before,
            now=now,
            classes=tuple(self._classes(previous, present)),
            first={kind: self._leftovers.first(kind, NUM_NAMED) for kind in KINDS},
            moves=self._leftovers.moves(_NUM_MOVES),
            newly_rejected=(self._num_rejected, self._rejected),
            comparisons=shifts.compare(previous, present, new),
            distributions=(previous.overall(), present.overall()),
        )

    def _classes(self, before: Distributions, now: Distributions) -> Iterator[ClassChanges]:
        came, left = (self._leftovers.counts(by_new_class=is_new) for is_new in (True, False))
        for label in sorted(before.labels() | now.labels()):
            yield ClassChanges(
                name=label,
                num_before=before.num_images(label),
                num_now=now.num_images(label),
                counts={
                    **{kind: came.get((kind, label), 0) for kind in (ADDED, REPLACED, RENAMED, RELABELLED)},
                    REMOVED: left.get((REMOVED, label), 0),
                },
                num_left=left.get((RELABELLED, label), 0),
            )


def _what(line: Line) -> tuple[str, str]:
    return line["label"], line["content_hash"]
