"""The images that manifests name, as a source."""

import functools
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from trainer.data.sources import opening
from trainer.data.sources.manifests import addresses, lines
from trainer.data.sources.manifests.entry import BadLine, Entry, OtherTask
from trainer.data.sources.manifests.files import ManifestFile
from trainer.data.sources.remarks import Remarks, first_names
from trainer.data.sources.source import SourceImage
from trainer.data.splits import strictness
from vertex_gpu_training.userinput import paths
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

T = TypeVar("T")
BLANK = "blank lines, ignored"
REPEATED = "lines with an image of an earlier line, counted once"
FEW = "labels with fewer than 10 images; Google advises 10 or more"
IMBALANCE = "labels with over 100 times the images of the smallest one; Google advises at most 100"
_MIN_IMAGES = 10
_MAX_IMBALANCE = 100
_MAX_BAD_LINES = 200_000
"""More are refused at once, because each is kept with its reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """The line that names an image first."""

    name: str
    label: str
    split: str
    file: ManifestFile
    number: int

    @property
    def where(self) -> str:
        return f"{self.file.name}:{self.number}"


class ManifestSource:
    """Images with their labels and splits as manifests give them; bad lines count as unreadable images."""

    def __init__(self, source: str, files: Sequence[ManifestFile]) -> None:
        """Read all lines.

        Args:
            source: For messages, as the user wrote it.
            files: The manifests, in the order in which they are read.

        Raises:
            UserError: A manifest is for another task or cannot be read, no line can be used, there are fewer than two
                labels, or a split or a label in train has no image.
            OSError: The bucket does not exist or is not readable.
        """
        self.remarks = Remarks()
        self.unreadable: list[tuple[str, str]] = []
        self._source = paths.shown(source)
        self._lines: dict[str, _Line] = {}
        """Location of an image -> its line."""
        self._names: set[str] = set()
        for file in files:
            self._read(file)
        self._refuse_untrainable()
        counts = Counter(line.label for line in self._lines.values())
        self.class_names = sorted(counts)
        self._advise(counts)

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, in the order of the manifests."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for location, line in self._lines.items():
            yield SourceImage(
                name=line.name,
                label=labels[line.label],
                split=line.split,
                read=functools.partial(_of_line, line, opening.read, location),
                identity=functools.partial(_of_line, line, opening.identity, location),
                location=location,
            )

    def _read(self, file: ManifestFile) -> None:
        parse = file.parse
        with file.open() as opened:
            for number, line in lines.numbered(opened):
                if line == b"":
                    self.remarks.add(BLANK, f"{file.name}:{number}")
                    continue
                try:
                    self._add(parse(lines.text(line)), file, number)
                except BadLine as error:
                    self._add_bad(f"{file.name}:{number}", str(error))
                except OtherTask as error:
                    raise UserError(
                        f"{file.name}:{number} is of a manifest for {error}, which is not supported; expected one label"
                        " per image"
                    ) from None

    def _add(self, entry: Entry, file: ManifestFile, number: int) -> None:
        location, name = addresses.resolve(entry.address, file.base)
        split = file.split if entry.split is None else entry.split
        label = sys.intern(entry.label)
        if (first := self._lines.get(location)) is None:
            if name in self._names:
                # The same path in another bucket or below another folder.
                name = f"{hashlib.sha256(location.encode()).hexdigest()[:16]}/{name}"
            self._names.add(name)
            self._lines[location] = _Line(name=name, label=label, split=split, file=file, number=number)
            return
        if first.label != label:
            raise UserError(
                f"{file.name}:{number} gives {quoted(name)} the label {quoted(label)} after {quoted(first.label)} in"
                f" {first.where}; multi-label classification is not supported: keep one label per image"
            )
        self.remarks.add(REPEATED, f"{file.name}:{number}")
        if strictness(split) > strictness(first.split):
            self._lines[location] = replace(first, split=split)

    def _add_bad(self, where: str, reason: str) -> None:
        self.unreadable.append((where, reason))
        if len(self.unreadable) > _MAX_BAD_LINES:
            raise UserError(f"more than {_MAX_BAD_LINES:,} lines of {self._source} are bad ({self._first_bad()})")

    def _first_bad(self) -> str:
        return first_names([f"{where}: {reason}" for where, reason in self.unreadable[:3]], len(self.unreadable))

    def _refuse_untrainable(self) -> None:
        if not self._lines:
            raise UserError(
                f"no line of {self._source} can be used ({self._first_bad() or 'it is empty'}); expected"
                " gs://BUCKET/NAME,LABEL in .csv, or imageGcsUri and classificationAnnotation in .jsonl"
            )
        labels = {line.label for line in self._lines.values()}
        if len(labels) < 2:
            raise UserError(f"only one label in {self._source}: {min(labels)!r}; expected two or more")
        splits = {line.split for line in self._lines.values()}
        if splits != {""} and (missing := [name for name in ("train", "test") if name not in _completed(splits)]):
            raise UserError(
                f"{self._source} gives splits, but none of its lines is in {missing[0]}; add some, or remove ml_use"
            )
        in_train = {line.label for line in self._lines.values() if line.split in ("", "train")}
        if unseen := sorted(labels - in_train):
            raise UserError(
                f"label {quoted(unseen[0])} of {self._source} has no images in train; add some or remove the label"
            )

    def _advise(self, counts: Counter[str]) -> None:
        """Remark on what Google advises against."""
        smallest = min(counts.values())
        for label, count in sorted(counts.items(), key=lambda pair: (pair[1], pair[0])):
            if count < _MIN_IMAGES:
                self.remarks.add(FEW, f"{label}: {count:,}")
            if count > _MAX_IMBALANCE * smallest:
                self.remarks.add(IMBALANCE, f"{label}: {count:,}")


def _completed(splits: set[str]) -> set[str]:
    """Return splits with train where some images have none: prepare adds those to train."""
    return splits | {"train"} if "" in splits else splits


def _of_line(line: _Line, look: Callable[[str], T], location: str) -> T:
    try:
        return look(location)
    except OSError as error:
        raise OSError(f"{error.strerror or error} ({line.where})") from None
