"""Divides examples into train, validation and test, by a hash of their content."""

import bisect
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localvertex_base.userinput.errors import UserError

SPLITS = ("train", "validation", "test")
_FRACTION = 0.1
"""Of the images in validation, and as many in test."""
SALT = 0
"""Part of every hash that decides a split or a sample. A seed of the run would change the test images with it."""


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


@dataclass(frozen=True, kw_only=True)
class Content:
    """All images with the same bytes: what their split depends on."""

    content_hash: str
    """SHA-256 of the encoded original."""
    labels: frozenset[int]
    split: str
    """The split that the source assigned, or empty; of several, the one of the highest `strictness`."""
    previous: str = ""
    """The split in the previous dataset, or empty."""


class Splits:
    """The split of each content.

    It is a hash of the content, the same in every run: an image keeps its split when others are added or removed, and
    equal images are never in two splits. A class that lacks a split although it has enough different images gets its
    nearest one moved there, so images of a small class may move when it grows. Splits of the source are
    kept; validation is taken from train where the source has none. Equal images in train and test of a source count
    as test. A content keeps its split of the previous dataset, unless the source gives it another one.
    """

    def __init__(self, contents: Callable[[], Iterable[Content]]) -> None:
        """Read all contents twice, and keep only the moved ones in memory.

        Args:
            contents: Returns an iterator over all contents, each once.
        """
        given = {content.split for content in contents()}
        self._movable = () if "validation" in given else ("validation",) if given != {""} else ("validation", "test")
        """The splits besides train that are decided here."""
        self._moved: dict[str, str] = {}
        if self._movable:
            self._fill_gaps(contents())

    def of(self, content: Content) -> str:
        """Return train, validation or test."""
        if content.split in ("validation", "test"):
            return content.split
        if content.content_hash in self._moved:
            return self._moved[content.content_hash]
        if content.previous in ("train", *self._movable):
            return content.previous
        position, decided = _position(content.content_hash), enumerate(reversed(self._movable), start=1)
        return next((split for number, split in decided if position < number * _FRACTION), "train")

    def _fill_gaps(self, contents: Iterable[Content]) -> None:
        """Move images so that each class with enough different images is in each split that is decided here."""
        classes: dict[int, dict[str, _Nearest]] = {}
        for content in contents:
            # Contents under two classes are not moved: that would change both classes.
            if len(content.labels) == 1:
                by_split = classes.setdefault(min(content.labels), {split: _Nearest() for split in SPLITS})
                by_split[self.of(content)].add(content.content_hash)
        for by_split in classes.values():
            for wanted in ("train", *self._movable):
                donors = [by_split[split] for split in (*self._movable, "train") if split != wanted]
                largest = max(donors, key=lambda nearest: nearest.count)
                if by_split[wanted].count == 0 and largest.count > 1:
                    moved = largest.take()
                    by_split[wanted].add(moved)
                    self._moved[moved] = wanted


class _Nearest:
    """The contents of one class and split: their number, and the first ones by position."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[float, str]] = []

    def add(self, content_hash: str) -> None:
        self.count += 1
        bisect.insort(self._first, (_position(content_hash), content_hash))
        # Each split gives at most one content to each of the others.
        del self._first[len(SPLITS) :]

    def take(self) -> str:
        self.count -= 1
        return self._first.pop(0)[1]


def _position(content_hash: str) -> float:
    """Return the position of a content in [0, 1), uniformly distributed."""
    digest = hashlib.sha256(f"{SALT}:{content_hash}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def strictness(split: str) -> int:
    """Return the rank of a split, empty being the lowest: equal images in several are used in the highest."""
    return ("", *SPLITS).index(split)
