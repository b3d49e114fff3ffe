"""One attempt to make a dataset: from the source to the published folder."""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from exact_resume.files import publication, storage
from localvertex._base.userinput.errors import UserError
from trainer.data import dataset, splits
from trainer.data.dataset import Dataset
from trainer.data.preparing import dataset_files, image_list, prefixes
from trainer.data.preparing.dataset_files import Prepared
from trainer.data.preparing.engines.factory import Engine
from trainer.data.preparing.previous.dataset import NoPreviousDataset, entry_of, previous_of
from trainer.data.preparing.previous.history import HistoryEntry, NoHistory, Unusable
from trainer.data.preparing.previous.rows import gather
from trainer.data.preparing.quality import rejected
from trainer.data.preparing.quality.quality import Quality
from trainer.data.preparing.rows import Row, Rows, open_rows as rows_on_disk
from trainer.data.preparing.statistics import Statistics
from trainer.data.sources.factory import open_source
from trainer.data.sources.source import Source, SourceImage
from trainer.data.splits import SPLITS, Splits
from trainer.data.stored.records import Record, parse
from trainer.files import progress


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareRequest:
    """Request for one dataset."""

    source: str
    """The source as the user wrote it."""
    output_directory: str
    image_size: int
    max_examples: int
    max_bad_fraction: float
    """Fraction of images that may be bad."""
    make_engine: Callable[..., Engine]
    """Is called with all that `engines.factory.make` takes by name."""
    write_report: Callable[[Dataset, Iterator[Record], Mapping[str, Record]], None]
    """Is called with the dataset, whose shards may not be on this machine, the records of train in their order, and
    those of look-alikes by name."""
    write_changes: Callable[[str, str, str], None]
    """Is called with a folder that has metadata and list of the previous dataset, its address, and the new dataset; the
    first two are empty if there is none."""
    strict: frozenset[str]
    """Names of the warnings that count as errors."""

    @property
    def address(self) -> str:
        """Return the output folder as the history has it: absolute, or on gs://."""
        return (
            self.output_directory
            if storage.is_remote(self.output_directory)
            else os.path.abspath(self.output_directory)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreparedResult:
    """A dataset that was made."""

    dataset: Dataset
    """The dataset, whose temporary folder has been removed."""
    entry: HistoryEntry
    previous: tuple[HistoryEntry, ...]
    """The entry of the previous dataset, if there is one."""
    num_read: int
    """Number of images that were read for it."""


def attempt(wanted: PrepareRequest, history: NoHistory, *, is_trusted: bool, parts_folder: str) -> PreparedResult:
    """Make the dataset; it appears complete or not at all.

    Args:
        wanted: The dataset.
        history: Names the previous one, and gets this one.
        is_trusted: Whether images of the previous dataset are used; otherwise only its splits are.
        parts_folder: Where parts are found and made; empty for none, and all images are read.

    Raises:
        UserError: The source cannot be used, or too many of its images are bad.
        Unusable: The previous dataset was changed meanwhile; the caller may try again without trust.
    """
    began_ns = time.time_ns()
    with storage.scratch("prepare") as scratch:
        with progress.progress_lines("listing", "entries") as found:
            opened = open_source(wanted.source, str(scratch), found.advance)
        if opened.unreadable:
            # Refused before any image is read.
            _refuse_bad(
                wanted.source,
                wanted.max_bad_fraction,
                opened.unreadable,
                num_bad=len(opened.unreadable),
                num_good=opened.num_images,
            )
        with (
            contextlib.closing(_previous(history, scratch, wanted, is_trusted=is_trusted)) as previous,
            # Without names, because they are as large as the dataset: they vanish with the process, even a killed one.
            tempfile.TemporaryFile(prefix="prepare-") as file,
            rows_on_disk() as rows,
            contextlib.closing(
                wanted.make_engine(
                    file=file,
                    parts_folder=parts_folder,
                    work_folder=history.parts or str(scratch),
                    is_remote=storage.is_remote(wanted.address),
                )
            ) as engine,
            publication.committed_directory(
                wanted.output_directory,
                last=dataset.METADATA_FILE,
                own=dataset_files.OWN,
                copied=engine.copied,
                is_checked=True,
            ) as directory,
        ):
            rows.add(
                Row.of(name=name, label=None, split="", identity={}, reason=reason)
                for name, reason in opened.unreadable
            )
            images = _sample(opened, wanted.max_examples)
            total = min(opened.num_images, wanted.max_examples or opened.num_images)
            with progress.progress_lines("reading", "images", total) as read:
                num_read = gather(
                    images,
                    wanted.image_size,
                    engine,
                    rows,
                    previous,
                    is_trusted=is_trusted,
                    parts_folder=parts_folder,
                    progress=read,
                )
            rows.set_splits(Splits(rows.contents))
            quality = Quality(rows, opened.class_names, wanted.image_size)
            statistics = _statistics(wanted, opened, rows, directory, quality)
            prepared = Prepared(engine, previous if is_trusted else NoPreviousDataset())
            with progress.progress_lines("writing", "images", statistics.num_images) as done:
                dataset_files.write(
                    directory,
                    rows,
                    prepared,
                    done,
                    statistics=statistics,
                    quality=quality.to_dict(),
                    image_size=wanted.image_size,
                    source=wanted.source,
                )
            # Before the dataset appears, because one without its report would have to be removed by hand.
            made = dataset.load(str(directory))
            train, shown = (
                (parse(data) for _, data in prepared.records(some))
                for some in (rows.used_rows("train", *prefixes.bounds("")), quality.shown_images())
            )
            entry = entry_of(directory, wanted.address, began_ns=began_ns)
            kept = (dataclasses.replace(previous.entry, is_published=True),) if previous.entry else ()
            wanted.write_report(made, train, {record.file_name: record for record in shown})
            wanted.write_changes(previous.folder, previous.entry.dataset if previous.entry else "", str(directory))
            history.write(entry, *kept)
    return PreparedResult(
        dataset=made,
        entry=entry,
        previous=kept,
        num_read=num_read,
    )


def _previous(
    history: NoHistory, scratch: pathlib.Path, wanted: PrepareRequest, *, is_trusted: bool
) -> NoPreviousDataset:
    try:
        return previous_of(history, scratch, image_size=wanted.image_size)
    except Unusable:
        if is_trusted:
            raise
        return NoPreviousDataset()


def _statistics(
    wanted: PrepareRequest, opened: Source, rows: Rows, directory: pathlib.Path, quality: Quality
) -> Statistics:
    """Compute the statistics, write the lists of images, and refuse a dataset that cannot be trained on."""
    statistics = Statistics(opened.class_names, opened.remarks)
    with (
        image_list.open_writer(directory, opened.class_names) as add_line,
        rejected.open_writer(directory, opened.class_names) as add_rejected,
        progress.progress_lines("computing statistics", "images") as done,
    ):
        for row in rows.by_name():
            statistics.add(row)
            quality.add(row)
            add_line(row)
            add_rejected(row)
            done.advance()
    # A sample is taken from the readable images.
    num_bad = statistics.num_bad_files - (len(opened.unreadable) if wanted.max_examples else 0)
    _refuse_bad(
        wanted.source, wanted.max_bad_fraction, statistics.bad_files, num_bad=num_bad, num_good=statistics.num_images
    )
    _refuse_untrainable(wanted.source, opened.class_names, rows)
    if remarks := statistics.describe():
        print(f"note: source {wanted.source!r}: {'; '.join(remarks)}", file=sys.stderr)
    quality.report(wanted.strict, directory)
    return statistics


def _sample(source: Source, max_examples: int) -> Iterable[SourceImage]:
    """Return all images, or a sample over the classes in turn that does not depend on what else the folder contains."""
    if not max_examples:
        return source.images()
    by_class: dict[int, list[tuple[str, str]]] = {}
    for image in source.images():
        key = hashlib.sha256(f"{splits.SALT}:{image.name}".encode()).hexdigest()
        by_class.setdefault(image.label, []).append((key, image.name))
    ranked = sorted((rank, key, name) for pairs in by_class.values() for rank, (key, name) in enumerate(sorted(pairs)))
    chosen = {name for _, _, name in ranked[:max_examples]}
    return (image for image in source.images() if image.name in chosen)


def _refuse_bad(
    source: str, max_fraction: float, first: Sequence[tuple[str, str]], *, num_bad: int, num_good: int
) -> None:
    """Refuse too many bad images.

    Args:
        source: As the user wrote it.
        max_fraction: Fraction of images that may be bad.
        first: Name and reason of the first bad images.
        num_bad: Number of bad images.
        num_good: Number of other images.

    Raises:
        UserError: There are too many.
    """
    num_all = num_bad + num_good
    if num_bad > max_fraction * num_all:
        named = "; ".join(f"{name}: {reason}" for name, reason in first[:3])
        raise UserError(
            f"{num_bad} of {num_all} images of {source!r} are bad, more than max_bad_fraction={max_fraction:g} allows"
            f" ({named}); repair or remove them, or raise max_bad_fraction"
        )


def _refuse_untrainable(source: str, class_names: list[str], rows: Rows) -> None:
    """Refuse a class or a split without images.

    Raises:
        UserError: There is one.
    """
    counts = rows.label_counts()
    if empty := [name for label, name in enumerate(class_names) if label not in counts]:
        raise UserError(
            f"class {empty[0]!r} of {source!r} has no usable image; add images, remove the class, or raise max_examples"
        )
    present = {split for split, _ in rows.split_counts()}
    if missing := [split for split in SPLITS if split not in present]:
        raise UserError(
            f"{source!r} has {rows.num_contents()[0]} distinct images, too few for a {missing[0]} split; give"
            " 3 or more per class, or, if the source has splits, this one, too"
        )
