"""Which example is trained on, which chooses the checkpoint, which only tests: decided by its content."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from trainer.data.sources import SPLITS

VALIDATION_FRACTION = 0.1
TEST_FRACTION = 0.1


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What the decision needs to know of one image."""

    content_hash: str
    """SHA-256 of the encoded original."""
    label: int
    split: str
    """The source's own, or empty."""


def assign(candidates: Iterable[Candidate], seed: int) -> dict[str, str]:
    """A split for each content.

    An image keeps its split when others come or go, and equal images are never in two splits: its place is a hash of
    (seed, content). Classes that miss a split though they have enough different images get their nearest one moved, so
    a class of a handful of images may see a move when it grows. Splits of the source are kept; validation is carved
    out of train where the source has none. Equal images in train and test of a source count as test.

    Returns:
        content hash -> train, validation or test.
    """
    everything = list(candidates)
    given: dict[str, str] = {}
    for candidate in everything:
        given[candidate.content_hash] = max(given.get(candidate.content_hash, ""), candidate.split, key=_strictness)
    has_own = any(given.values())
    own_validation = "validation" in given.values()
    splits = {
        content: split if split in ("validation", "test") else _by_hash(content, seed, has_own, own_validation)
        for content, split in given.items()
    }
    movable = () if has_own and own_validation else (("validation",) if has_own else ("validation", "test"))
    _fill_gaps(everything, splits, movable, seed)
    return splits


def position(content_hash: str, seed: int) -> float:
    """The place of a content in [0, 1), evenly spread."""
    digest = hashlib.sha256(f"{seed}:{content_hash}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _strictness(split: str) -> int:
    return ("", *SPLITS).index(split)


def _by_hash(content: str, seed: int, has_own: bool, own_validation: bool) -> str:
    place = position(content, seed)
    if not has_own and place < TEST_FRACTION:
        return "test"
    if own_validation:
        return "train"
    start = 0.0 if has_own else TEST_FRACTION
    return "validation" if start <= place < start + VALIDATION_FRACTION else "train"


def _fill_gaps(everything: list[Candidate], splits: dict[str, str], movable: tuple[str, ...], seed: int) -> None:
    """Move images so that each class with enough different images is in each split that we decide on."""
    labels: dict[str, set[int]] = defaultdict(set)
    for candidate in everything:
        labels[candidate.content_hash].add(candidate.label)
    by_class: dict[int, list[str]] = defaultdict(list)
    # Contents under two classes stay where they are: moving one would change both classes.
    for content in sorted((c for c in labels if len(labels[c]) == 1), key=lambda c: position(c, seed)):
        by_class[min(labels[content])].append(content)
    for contents in by_class.values():
        for wanted in ("train", *movable):
            counts = {split: sum(splits[c] == split for c in contents) for split in SPLITS}
            donors = [s for s in (*movable, "train") if s != wanted and counts[s] > 1]
            if counts[wanted] == 0 and donors:
                largest = max(donors, key=lambda split: counts[split])
                splits[next(c for c in contents if splits[c] == largest)] = wanted
