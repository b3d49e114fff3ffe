"""Compares two datasets by their lists of images."""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from trainer.data.preparing import image_list

ADDED, REMOVED, REPLACED, RELABELLED, RENAMED = KINDS = ("added", "removed", "replaced", "relabelled", "renamed")


@dataclass(frozen=True, order=True)
class Image:
    """A usable image."""

    name: str
    label: str
    content_hash: str
    split: str = field(compare=False)


Pair = tuple[Image | None, Image | None]
"""An image before (None if it was added) and now (None if it was removed)."""
_STAGES: tuple[tuple[str, Callable[[Image], tuple[str, ...]]], ...] = (
    (RENAMED, lambda image: (image.content_hash, image.label)),
    (RELABELLED, lambda image: (image.content_hash,)),
    (REPLACED, lambda image: (image.name, image.label)),
)
"""Kind of change and what matched images have in common; each image is matched by one stage at most."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All differences of two datasets."""

    num_before: Counter[str] = field(default_factory=Counter)
    """Class -> number of usable images."""
    num_now: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    """Kind of change -> the images that changed, by name."""
    newly_rejected: list[tuple[str, str]] = field(default_factory=list)
    """Name and reason of each usable image that became unusable."""
    moved: list[tuple[Image, Image]] = field(default_factory=list)
    """Each image before and now that is in another split than before."""

    @property
    def new_classes(self) -> list[str]:
        """Classes that had no image."""
        return sorted(self.num_now.keys() - self.num_before)

    @property
    def vanished_classes(self) -> list[str]:
        """Classes that no longer have an image."""
        return sorted(self.num_before.keys() - self.num_now)

    def metrics(self) -> dict[str, float]:
        """Return the figures as metrics."""
        return {
            "images_before": self.num_before.total(),
            "images_now": self.num_now.total(),
            **{f"images_{kind}": len(self.pairs[kind]) for kind in KINDS},
            "images_newly_rejected": len(self.newly_rejected),
            "images_in_another_split": len(self.moved),
            "new_classes": len(self.new_classes),
            "vanished_classes": len(self.vanished_classes),
        }


def between(previous_directory: str, new_directory: str) -> Changes:
    """Compare two datasets by their lists of images.

    Both lists are sorted by name, so only images that are not in both are in memory.

    Args:
        previous_directory: Local or on gs://.
        new_directory: Local or on gs://.
    """
    found, before, now = Changes(), list[Image](), list[Image]()
    lists = (
        zip(itertools.repeat(is_now), image_list.read(directory), strict=False)
        for is_now, directory in ((False, previous_directory), (True, new_directory))
    )
    by_name = itertools.groupby(heapq.merge(*lists, key=lambda pair: pair[1]["name"]), lambda pair: pair[1]["name"])
    for name, group in by_name:
        pairs = list(group)
        old, new = (
            Counter(
                Image(name, line["label"], line["content_hash"], line["split"])
                for own, line in pairs
                if own == is_now and "content_hash" in line
            )
            for is_now in (False, True)
        )
        found.num_before.update(image.label for image in old.elements())
        found.num_now.update(image.label for image in new.elements())
        if old and not new and pairs[-1][0]:
            found.newly_rejected.append((name, pairs[-1][1]["reason"]))
        before += (old - new).elements()
        now += (new - old).elements()
        if old == new:
            found.moved.extend(_moved(zip(old.elements(), new.elements(), strict=True)))
    for kind, key in _STAGES:
        found.pairs[kind], before, now = _match(before, now, key)
        found.moved.extend(_moved(found.pairs[kind]))
    found.pairs[REMOVED] = [(image, None) for image in before]
    found.pairs[ADDED] = [(None, image) for image in now]
    return found


def _moved(pairs: Iterable[Pair]) -> Iterator[tuple[Image, Image]]:
    """Yield the pairs that are in two splits."""
    return ((before, now) for before, now in pairs if before and now and before.split != now.split)


def _match(
    before: list[Image], now: list[Image], key: Callable[[Image], tuple[str, ...]]
) -> tuple[list[Pair], list[Image], list[Image]]:
    """Return pairs of images with the same key, in the order of their names, and the remaining images of both lists."""
    remaining: dict[tuple[str, ...], list[Image]] = {}
    for image in reversed(before):
        remaining.setdefault(key(image), []).append(image)
    pairs: list[Pair] = []
    unmatched = []
    for image in now:
        if same := remaining.get(key(image)):
            pairs.append((same.pop(), image))
        else:
            unmatched.append(image)
    return pairs, sorted(itertools.chain(*remaining.values())), unmatched
