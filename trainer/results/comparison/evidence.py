"""Decide which test images are evidence: each independent of the others, and seen by none of the models.

The gate, the comparison, their figures and their sentences count these images and no others.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from exact_resume.files import storage
from trainer.checkpoints import seen
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.data.preparing.quality import likeness, signatures
from trainer.data.stored.records import Record
from trainer.results.comparison.not_comparable import NotComparable


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The test images that count."""

    content_hashes: dict[str, str]
    """Name in the source -> SHA-256 of the original."""
    class_names: dict[str, str] = dataclasses.field(default_factory=dict)
    """Name in the source -> class."""
    num_seen: int
    """Test images that a model has seen, or a near-duplicate of them."""
    num_copies: int = 0
    """Test images left out because another test image is a near-duplicate, or an image of another class is equal."""

    @property
    def left_out(self) -> str:
        """Describe the examples that do not count, for messages."""
        return ", ".join(
            f"{number:,} {why}"
            for number, why in (
                (self.num_copies, "copies left out"),
                (self.num_seen, "left out because a model has seen them"),
            )
            if number
        )

    def of_classes(self, class_names: Collection[str]) -> "Evidence":
        """Return the images of some classes."""
        kept = {name: digest for name, digest in self.content_hashes.items() if self.class_names[name] in class_names}
        return dataclasses.replace(self, content_hashes=kept)

    def among(self, numbers: seen.Numbers) -> "Evidence":
        """Return the images of some numbers, see `trainer.checkpoints.seen.numbers`."""
        is_kept = np.isin(seen.numbers(self.content_hashes.values()), numbers)
        return dataclasses.replace(self, content_hashes=dict(itertools.compress(self.content_hashes.items(), is_kept)))

    def num_images(self, class_names: Collection[str]) -> dict[str, int]:
        """Return the number of images of each of these classes, without classes that have none."""
        found = Counter(self.class_names[name] for name in self.content_hashes)
        return {name: found[name] for name in class_names if found[name]}

    def chosen(self, records: Iterable[Record]) -> Iterator[tuple[int, Record]]:
        """Yield the position and the record of each image that counts; a name that is listed twice counts once."""
        left = set(self.content_hashes)
        for position, record in enumerate(records):
            if record.file_name in left:
                left.remove(record.file_name)
                yield position, record


def seen_by(model: str, path: storage.Path, beside: storage.Path = "") -> seen.SeenImages:
    """Return the images that a model has seen.

    Args:
        model: Name of the model, for the message.
        path: Its list.
        beside: The same list with signatures, which decide about near-duplicates, if it is still there.

    Raises:
        NotComparable: They are unknown, so no test image is evidence.
    """
    found, described = seen.read(path), seen.read(beside) if beside else None
    if found:
        return described if described and np.array_equal(described.numbers, found.numbers) else found
    raise NotComparable(
        f"it is not known which images the {model} has seen: its file {seen.FILE} or {seen.FILE}{seen.SECOND} is"
        " missing, empty or damaged",
        is_final=True,
    )


def of(data: Dataset, *known: seen.SeenImages) -> Evidence:
    """Return the evidence in the test split of a dataset.

    Args:
        data: The dataset.
        known: What each model has seen: the training and validation images of this dataset and of earlier ones.
    """
    tests = [line for line in image_list.read(data.directory) if line["split"] == "test" and "content_hash" in line]
    is_seen = np.any([each.includes(tests) for each in known], axis=0)
    same: dict[Any, list[dict[str, Any]]] = {}
    for line, is_left_out in zip(tests, is_seen, strict=True):
        if not is_left_out:
            # Equal pixels in other bytes have equal figures.
            same.setdefault(seen.pixels_of(line), []).append(line)
    # Images in several classes have no right answer.
    kept = _distinct([copies[0] for copies in same.values() if len({each["label"] for each in copies}) == 1])
    # One text per class.
    shared = {name: name for name in data.class_names}
    num_seen = int(is_seen.sum())
    return Evidence(
        content_hashes={line["name"]: line["content_hash"] for line in kept},
        class_names={line["name"]: shared[line["label"]] for line in kept},
        num_seen=num_seen,
        num_copies=len(tests) - num_seen - len(kept),
    )


def _distinct(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines of an image list without near-duplicates of earlier ones."""
    own = [signatures.signature_of(line) for line in lines]
    places = [place for place, each in enumerate(own) if each]
    pairs = likeness.find(signatures.unpacked(own), np.ones(len(places), bool)).pairs.tolist()
    left_out: set[int] = set()
    for other, ones in itertools.groupby(sorted((other, one) for one, other in pairs), key=lambda pair: pair[0]):
        if any(one not in left_out for _, one in ones):
            left_out.add(other)
    gone = {places[each] for each in left_out}
    return [line for place, line in enumerate(lines) if place not in gone]
