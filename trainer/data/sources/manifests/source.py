"""The images that manifests name, as a source."""

import contextlib
import dataclasses
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.data.sources import opening
from trainer.data.sources.labels import sorted_unlike
from trainer.data.sources.manifests import addresses, lines
from trainer.data.sources.manifests.files import ManifestFile
from trainer.data.sources.manifests.lines import BadLine, OtherTask
from trainer.data.sources.remarks import Remarks, first_names
from trainer.data.sources.source import Count, SourceImage, ignore_count
from trainer.data.splits import strictness

T = TypeVar("T")
BLANK = "blank lines, ignored"
REPEATED = "lines with an image of an earlier line, counted once"
_MAX_BAD_LINES = 200_000
"""Limit; more are refused at once, because each is kept with its reason."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line that names an image."""

    location: str
    name: str
    label: str
    split: str
    file: int
    """Position of the manifest in the order of reading."""
    number: int
    """Number of the line in its manifest."""


class Conflict(Exception):
    """A line gives an image another label than an earlier one; the arguments are the line and the earlier one."""


def _unite(lines: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """Return the first line of each image, with the strictest split and a unique name, and the repeated lines.

    Raises:
        Conflict: An image has two labels.
    """
    first: dict[str, Line] = {}
    repeated = []
    for line in lines:
        known = first.setdefault(line.location, line)
        if known is line:
            continue
        if known.label != line.label:
            raise Conflict(line, known)
        repeated.append(line)
        if strictness(line.split) > strictness(known.split):
            first[line.location] = dataclasses.replace(known, split=line.split)
    return list(_with_unique_names(first.values())), repeated


def _with_unique_names(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines; of equal paths in other buckets or folders, the later ones get other names."""
    names = set()
    for line in lines:
        if line.name in names:
            digest = hashlib.sha256(line.location.encode("utf-8", "surrogateescape")).hexdigest()
            yield dataclasses.replace(line, name=f"{digest[:16]}/{line.name}")
        else:
            names.add(line.name)
            yield line


class ManifestSource:
    """Images with their labels and splits as manifests give them; bad lines count as unreadable images."""

    def __init__(
        self, source: str, files: Sequence[ManifestFile], count: Count = ignore_count, *, is_labelled: bool = True
    ) -> None:
        """Read all lines.

        Args:
            source: The source as the user wrote it, for messages.
            files: The manifests, in the order in which they are read.
            count: Is called with the number of lines read.
            is_labelled: Whether the images are to train a model; otherwise labels and splits are ignored.

        Raises:
            UserError: A manifest is for another task or cannot be read, no line can be used, there are fewer than two
                labels, or a split or a label in train has no image.
            OSError: The bucket does not exist or is not readable.
        """
        self.remarks = Remarks()
        self.unreadable: list[tuple[str, str]] = []
        self._source = paths.display(source)
        self._files, self._is_labelled = files, is_labelled
        found = (line for position in range(len(files)) for line in self._read(position, count))
        # A manifest with a refused line is still open.
        with contextlib.closing(found):
            self._lines = self._unite(found)
        counts = Counter((line.label, line.split) for line in self._lines)
        self._refuse_untrainable(counts)
        self.class_names = sorted_unlike({label for label, _ in counts}, self._source)
        self.num_images = len(self._lines)

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, in the order of the manifests."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for line in self._lines:
            where = self._where(line)
            yield SourceImage(
                name=line.name,
                label=labels[line.label],
                split=line.split,
                read=functools.partial(_of_line, where, opening.read, line.location),
                identity=functools.partial(_of_line, where, opening.identity, line.location),
                location=line.location,
            )

    def _read(self, position: int, count: Count) -> Iterator[Line]:
        """Yield the lines of a manifest that name an image."""
        file = self._files[position]
        parse = file.parse
        with file.open() as opened:
            for number, text in lines.number_lines(opened):
                count(1)
                where = f"{file.name}:{number}"
                if text == b"":
                    self.remarks.add(BLANK, where)
                    continue
                try:
                    entry = parse(lines.text_of(text), is_labelled=self._is_labelled)
                    location, name = addresses.resolve(entry.address, file.base)
                except BadLine as error:
                    self._add_bad(where, str(error))
                except OtherTask as error:
                    raise UserError(
                        f"{where} is of a manifest for {error}, which is not supported; expected one label per image"
                    ) from None
                else:
                    split = file.split if entry.split is None and self._is_labelled else entry.split or ""
                    yield Line(
                        location=location, name=name, label=entry.label, split=split, file=position, number=number
                    )

    def _unite(self, lines: Iterable[Line]) -> list[Line]:
        """Return one line per image; refuse an image with two labels."""
        try:
            kept, repeated = _unite(lines)
        except Conflict as conflict:
            later, first = conflict.args
            raise UserError(
                f"{self._where(later)} gives {quote(later.name)} the label {quote(later.label)} after"
                f" {quote(first.label)} in {self._where(first)}; multi-label classification is not supported: keep one"
                " label per image"
            ) from None
        for line in repeated:
            self.remarks.add(REPEATED, self._where(line))
        return kept

    def _where(self, line: Line) -> str:
        return f"{self._files[line.file].name}:{line.number}"

    def _add_bad(self, where: str, reason: str) -> None:
        self.unreadable.append((where, reason))
        if len(self.unreadable) > _MAX_BAD_LINES:
            raise UserError(f"more than {_MAX_BAD_LINES:,} lines of {self._source} are bad ({self._first_bad()})")

    def _first_bad(self) -> str:
        return first_names([f"{where}: {reason}" for where, reason in self.unreadable[:3]], len(self.unreadable))

    def _refuse_untrainable(self, counts: Mapping[tuple[str, str], int]) -> None:
        if not counts:
            raise UserError(
                f"no line of {self._source} can be used ({self._first_bad() or 'it is empty'}); expected"
                " gs://BUCKET/NAME,LABEL in .csv, or imageGcsUri and classificationAnnotation in .jsonl"
            )
        labels = {label for label, _ in counts}
        if not self._is_labelled:
            return
        if len(labels) < 2:
            bad = f", and {len(self.unreadable):,} lines were refused ({self._first_bad()})" if self.unreadable else ""
            raise UserError(f"only one label in {self._source}: {min(labels)!r}{bad}; expected two or more")
        # prepare adds images without a split to train.
        splits = {split or "train" for _, split in counts}
        if any(split for _, split in counts) and (
            missing := [name for name in ("train", "test") if name not in splits]
        ):
            raise UserError(
                f"{self._source} gives splits, but none of its lines is in {missing[0]}; add some, or remove ml_use"
            )
        in_train = {label for label, split in counts if split in ("", "train")}
        if unseen := sorted(labels - in_train):
            raise UserError(
                f"label {quote(unseen[0])} of {self._source} has no images in train; add some or remove the label"
            )


def _of_line(where: str, look: Callable[[str], T], location: str) -> T:
    try:
        return look(location)
    except OSError as error:
        found = addresses.nearest(location) if isinstance(error, FileNotFoundError) else ""
        hint = f"; there is {quote(found, 300)}, write the name in this form" if found else ""
        raise OSError(f"{error.strerror or error}{hint} ({where})") from None
