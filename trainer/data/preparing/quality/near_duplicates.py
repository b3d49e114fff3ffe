"""Near-duplicates: different images with similar signatures, counted within and across splits."""

import csv
import dataclasses
import functools
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.files import storage
from trainer.data.preparing.quality import likeness
from trainer.data.preparing.quality.rejected import cell
from trainer.data.preparing.quality.signatures import NUM_BYTES, SMALL, signature_of
from trainer.data.preparing.rows import Row
from trainer.data.splits import SPLITS

_MAX_PAIRS = 12
"""Number of pairs to keep across splits, and as many within one split."""
FILE = "near_duplicates.csv"
_Indices = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """The near-duplicates of a dataset. Equal files, which are always in the same split, count as one image."""

    num_across: int
    """Number of validation and test images with a near-duplicate in another split."""
    num_within: int
    """Number of images with a near-duplicate in the same split."""
    num_pairs: int
    is_complete: bool
    """False if there are so many similar images that the numbers are lower bounds."""
    pairs: list[dict[str, Any]]
    """The first pairs: those across splits come first, then the most similar ones."""


class Finder:
    """Collects the signatures of images, sorted by name, and then finds near-duplicates."""

    def __init__(self, class_names: list[str]) -> None:
        self._class_names = class_names
        self._images: list[dict[str, str]] = []
        self._known: set[str] = set()
        self._signatures = bytearray()

    def add(self, row: Row) -> None:
        """Add a used image; the first of equal files represents all of them."""
        content, found = row.content_hash, row.content
        if content is None or row.label is None or content in self._known:
            return
        if min(found["width"], found["height"]) < SMALL or not (signature := signature_of(found)):
            return
        self._known.add(content)
        label = self._class_names[row.label]
        self._images.append({"name": row.name, "class": label, "split": row.final, "content_hash": content})
        self._signatures += signature

    def find(self, directory: storage.Path) -> NearDuplicates:
        """Find all near-duplicates and write the list of them, once all images are added.

        Of images with equal signatures, the first one stands for the others in pairs with other signatures.

        Args:
            directory: Folder for the list.
        """
        found = np.frombuffer(bytes(self._signatures), dtype=f"V{NUM_BYTES}")
        unique, firsts, signature_of = np.unique(found, return_index=True, return_inverse=True)
        splits = np.array([SPLITS.index(image["split"]) for image in self._images], dtype=np.int64)
        of_each = signature_of * len(SPLITS) + splits
        counts = np.bincount(of_each, minlength=len(unique) * len(SPLITS)).reshape(-1, len(SPLITS))
        similar = likeness.find(unique.view(np.uint8).reshape(-1, NUM_BYTES), counts[:, 1:].sum(axis=1) > 0)
        distances = np.maximum(np.rint(10_000 * similar.differences), 1).astype(np.int64)
        pairs = np.concatenate([similar.pairs, distances[:, np.newaxis]], axis=1)
        alike = np.stack([*np.sort(firsts[pairs[:, :2]]).T, pairs[:, 2]], axis=1)
        others = np.flatnonzero(firsts[signature_of] != np.arange(len(found)))
        equal = np.stack([firsts[signature_of[others]], others, np.zeros_like(others)], axis=1)
        listed = np.concatenate([alike, equal])
        self._write(directory, listed[np.lexsort((listed[:, 1], listed[:, 0]))].tolist())
        num_pairs, ranked = _ranked(pairs, counts)
        own = (counts > 0) @ np.array([1, 2, 4])
        near = np.zeros_like(own)
        for one, other in (pairs.T[:2], pairs.T[1::-1]):
            np.bitwise_or.at(near, one, own[other])
        num_across = num_within = 0
        for split in range(len(SPLITS)):
            within = (near & 1 << split > 0) | (counts[:, split] > 1)
            num_within += int(counts[within, split].sum())
            across = (near | own) & ~(1 << split) > 0
            num_across += int(counts[across, split].sum()) if split else 0
        return NearDuplicates(
            num_across=num_across,
            num_within=num_within,
            num_pairs=num_pairs,
            is_complete=similar.is_complete,
            pairs=[
                self._pair(
                    np.flatnonzero(signature_of == one), np.flatnonzero(signature_of == other), is_across, distance
                )
                for one, other, is_across, distance in ranked
            ],
        )

    def _write(self, directory: storage.Path, listed: list[tuple[int, int, int]]) -> None:
        with open(os.path.join(directory, FILE), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            columns = ("name", "class", "split")
            writer.writerow([*columns, *(f"near_duplicate_{column}" for column in columns), "similarity"])
            # One image may be the first of thousands of pairs.
            cells = functools.cache(lambda number: [cell(self._images[number][column]) for column in columns])
            writer.writerows([*cells(one), *cells(other), _similarity(distance)] for one, other, distance in listed)

    def _pair(self, ones: _Indices, others: _Indices, is_across: bool, distance: int) -> dict[str, Any]:
        """Return the first two images, by name, of two equal or different signatures, across splits or within one."""
        one, other = min(
            (one, other)
            for one in self._first(ones)
            for other in self._first(others)
            if one != other and (self._images[one]["split"] != self._images[other]["split"]) == is_across
        )
        images = [self._images[number] for number in sorted((one, other))]
        return {
            "images": sorted(images, key=lambda image: SPLITS.index(image["split"])),
            "similarity": _similarity(distance),
        }

    def _first(self, numbers: _Indices) -> list[int]:
        """Return the first two of some images in each split."""
        return [
            number
            for split in SPLITS
            for number in [number for number in numbers.tolist() if self._images[number]["split"] == split][:2]
        ]


def _ranked(pairs: _Indices, counts: _Indices) -> tuple[int, list[tuple[int, int, bool, int]]]:
    """Return the number of pairs of different images, and the first pairs of signatures, which may be equal.

    Of each such pair, the indices of both signatures, whether it is across splits, and its distance. Those across
    splits come first, then the most similar ones.

    Args:
        pairs: Indices and distance [P, 3] of different signatures.
        counts: Number of images [N, 3] of each signature in train, validation and test.
    """
    total = counts.sum(axis=1)
    several = np.flatnonzero(total > 1)
    equal = np.stack([several, several, np.zeros_like(several)], axis=1)
    one, other, distances = np.concatenate([pairs, equal]).T
    is_equal = one == other
    within = (counts[one] * (counts[other] - is_equal[:, np.newaxis])).sum(axis=1)
    number = total[one] * (total[other] - is_equal)
    is_across = number > within
    order = np.lexsort((other, one, distances, ~is_across))
    num_across = int(is_across.sum())
    chosen = [*order[:num_across][:_MAX_PAIRS], *order[num_across:][:_MAX_PAIRS]]
    return int((number // (1 + is_equal)).sum()), [
        (int(one[each]), int(other[each]), bool(is_across[each]), int(distances[each])) for each in chosen
    ]


def _similarity(distance: int) -> float:
    return round(1 - distance / 10_000, 4)
