"""Divides examples into train, validation and test, by a hash of their content."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from vertex_gpu_training.userinput.errors import UserError

SPLITS = ("train", "validation", "test")
_VALIDATION_FRACTION = 0.1
SALT = 0
"""Part of every hash that decides a split or a sample. A seed of the run would change the test images with it."""
_TEST_FRACTION = 0.1


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One image, as far as its split depends on it."""

    content_hash: str
    """SHA-256 of the encoded original."""
    label: int
    split: str
    """The split that the source assigned, or empty."""


def check_batch_size(global_batch_size: int, num_train: int) -> None:
    """Refuse a batch that is larger than the training split.

    Raises:
        UserError: It is.
    """
    if global_batch_size > num_train:
        raise UserError(
            f"global_batch_size={global_batch_size} is more than the {num_train} images of the training split; use at"
            f" most {num_train}"
        )


def assign(candidates: Iterable[Candidate]) -> dict[str, str]:
    """Return a split for each content.

    The split is a hash of the content, the same in every run: an image keeps its split when others are added or
    removed, and equal images are never in two splits. A class that lacks a split although it has enough different
    images gets its nearest one moved there, so a class of a handful of images may see a move when it grows. Splits of
    the source are kept; validation is taken from train where the source has none. Equal images in train and test of a
    source count as test.

    Returns:
        Content hash -> train, validation or test.
    """
    everything = list(candidates)
    given: dict[str, str] = {}
    for candidate in everything:
        given[candidate.content_hash] = max(given.get(candidate.content_hash, ""), candidate.split, key=strictness)
    has_own = any(given.values())
    own_validation = "validation" in given.values()
    splits = {
        content: split if split in ("validation", "test") else _by_hash(content, has_own, own_validation)
        for content, split in given.items()
    }
    movable = () if has_own and own_validation else (("validation",) if has_own else ("validation", "test"))
    _fill_gaps(everything, splits, movable)
    return splits


def _position(content_hash: str) -> float:
    """Return the position of a content in [0, 1), uniformly distributed."""
    digest = hashlib.sha256(f"{SALT}:{content_hash}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def strictness(split: str) -> int:
    """Return the rank of a split, empty being the lowest: an image in several is used in the highest."""
    return ("", *SPLITS).index(split)


def _by_hash(content: str, has_own: bool, own_validation: bool) -> str:
    position = _position(content)
    if not has_own and position < _TEST_FRACTION:
        return "test"
    if own_validation:
        return "train"
    start = 0.0 if has_own else _TEST_FRACTION
    return "validation" if start <= position < start + _VALIDATION_FRACTION else "train"


def _fill_gaps(everything: list[Candidate], splits: dict[str, str], movable: tuple[str, ...]) -> None:
    """Move images so that each class with enough different images is in each split that is decided here."""
    labels: dict[str, set[int]] = defaultdict(set)
    for candidate in everything:
        labels[candidate.content_hash].add(candidate.label)
    by_class: dict[int, list[str]] = defaultdict(list)
    # Contents under two classes are not moved: that would change both classes.
    for content in sorted((c for c in labels if len(labels[c]) == 1), key=_position):
        by_class[min(labels[content])].append(content)
    for contents in by_class.values():
        for wanted in ("train", *movable):
            counts = {split: sum(splits[c] == split for c in contents) for split in SPLITS}
            donors = [s for s in (*movable, "train") if s != wanted and counts[s] > 1]
            if counts[wanted] == 0 and donors:
                largest = max(donors, key=lambda split: counts[split])
                splits[next(c for c in contents if splits[c] == largest)] = wanted
