"""Divides examples into train, validation and test, by a hash of their content."""

import bisect
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localvertex._base.userinput.errors import UserError

SPLITS = ("train", "validation", "test")
_FRACTION = 0.1
"""Share of the images in validation, and in test."""
_FEW = 100
"""A class with fewer images has a tenth of them in each of the two, rounded: their hashes alone may give it none."""
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
    equal images are never in two splits. Test images have the lowest positions, validation images the next ones. In a
    class with fewer than 100 different images, test and validation each extend upwards until they have a tenth, at
    least one each of three. Only the previous dataset can tell which images were there before a class grew, so a
    content keeps the split that it had there, unless the source gives it another split. Without a previous dataset,
    few images move.
    Splits of the source are kept; validation is taken from train where the source has none. Equal images in train and
    test of a source count as test.
    """

    def __init__(self, contents: Callable[[], Iterable[Content]]) -> None:
        """Read all contents up to four times; in memory are the moved ones, and fewer than 100 per class.

        Args:
            contents: Returns an iterator over all contents, each once.
        """
        given = {content.split for content in contents()}
        self._movable = () if "validation" in given else ("test",) * (given == {""}) + ("validation",)
        """The splits besides train that are decided here, by ascending position."""
        self._moved: dict[str, str] = {}
        if self._movable:
            self._divide_small(contents())
            self._fill_gaps(contents)

    def of(self, content: Content) -> str:
        """Return train, validation or test."""
        if found := self._moved.get(content.content_hash) or self._kept(content):
            return found
        position = _position(content.content_hash)
        return next((split for split, end in self._ends() if position < end), "train")

    def _kept(self, content: Content) -> str:
        """Return the split that the source or the previous dataset decides; empty if it is decided here."""
        if content.split in ("validation", "test"):
            return content.split
        return content.previous if content.previous in ("train", *self._movable) else ""

    def _ends(self) -> Iterable[tuple[str, float]]:
        """Yield each split besides train, and the position where it ends."""
        return ((split, number * _FRACTION) for number, split in enumerate(self._movable, start=1))

    def _divide_small(self, contents: Iterable[Content]) -> None:
        """Move images of small classes, so that each has enough of them in each split that is decided here."""
        kept: dict[int, Counter[str]] = defaultdict(Counter)
        undecided: dict[int, list[str]] = defaultdict(list)
        for content in contents:
            # Contents under two classes are not moved: that would change both classes.
            if len(content.labels) == 1 and content.split not in {"validation", "test"}:
                label = min(content.labels)
                if split := self._kept(content):
                    kept[label][split] += 1
                elif len(undecided[label]) < _FEW:
                    undecided[label].append(content.content_hash)
        for label, hashes in undecided.items():
            num_images = len(hashes) + kept[label].total()
            if num_images >= _FEW:
                continue
            hashes.sort(key=_position)
            fewest = max(1, round(num_images * _FRACTION))
            needed = {split: max(0, fewest - kept[label][split]) for split in ("train", *reversed(self._movable))}
            start = 0
            for split, end in self._ends():
                num_wanted = max(start + needed.pop(split), bisect.bisect_left(hashes, end, key=_position))
                stop = max(start, min(num_wanted, len(hashes) - sum(needed.values())))
                self._moved |= dict.fromkeys(hashes[start:stop], split)
                start = stop
            self._moved |= dict.fromkeys(hashes[start:], "train")

    def _fill_gaps(self, contents: Callable[[], Iterable[Content]]) -> None:
        """Move images so that each class with enough different images is in each split that is decided here."""
        counts: dict[int, Counter[str]] = defaultdict(Counter)
        for content in contents():
            if len(content.labels) == 1:
                counts[min(content.labels)][self.of(content)] += 1
        classes = {
            label: {split: _Nearest() for split in SPLITS}
            for label, found in counts.items()
            if len(found) < len(SPLITS)
        }
        for content in contents() if classes else ():
            if len(content.labels) == 1 and (of_class := classes.get(min(content.labels))):
                of_class[self.of(content)].add(content.content_hash)
        for by_split in classes.values():
            for wanted in ("train", *reversed(self._movable)):
                donors = [by_split[split] for split in (*reversed(self._movable), "train") if split != wanted]
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
