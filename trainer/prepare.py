"""Prepare a dataset from source images: read, check, resize, split and write them, with a report."""

import dataclasses
import hashlib
import sys
import tempfile
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

from trainer import command_line
from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.data import dataset, splits
from trainer.data.changes import last_time
from trainer.data.dataset import Dataset
from trainer.data.preparing import dataset_files, image_list
from trainer.data.preparing.read import read_all
from trainer.data.preparing.rows import Row, Rows, opened as rows_on_disk
from trainer.data.preparing.statistics import Statistics
from trainer.data.sources.factory import open_source
from trainer.data.sources.source import Source, SourceImage
from trainer.data.splits import SPLITS, Splits
from trainer.files import progress, storage
from trainer.results.report import dataset as report
from vertex_gpu_training.userinput import cli, paths
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

_MAX_BAD_FRACTION = 0.1
_MAX_EXAMPLES = 10**9


def prepare(
    *,
    source: str,
    output_directory: str,
    report_path: str,
    image_size: int,
    max_examples: int = 0,
    max_bad_fraction: float = _MAX_BAD_FRACTION,
    previous_directory: str = "",
    changes_path: str = "",
    change_metrics: MutableMapping[str, Any] | None = None,
) -> dict[str, str | int | float]:
    """Make the prepared dataset; it appears complete or not at all.

    Args:
        source: One of digits, a folder with a sub-folder per class, a manifest, or a pattern or folder of manifests
            (local or gs://), or tfds:NAME.
        output_directory: A folder that does not exist yet or is empty, local or gs://.
        report_path: File for the HTML report.
        image_size: Height and width of the prepared images in pixels.
        max_examples: Use at most this many images, evenly over the classes; 0: all.
        max_bad_fraction: Fraction of images that may be unreadable; they are skipped, counted and named.
        previous_directory: Dataset of the last run, for the page on what changed; empty if there is none.
        changes_path: File for that page; empty for none.
        change_metrics: Gets its figures.

    Returns:
        The metadata fingerprint, num_examples, num_train, num_validation, num_test, num_classes, image_size and
            num_bad_files.

    Raises:
        UserError: The source cannot be used, or too many of its images are bad.
    """
    _check_arguments(output_directory, image_size, max_examples, max_bad_fraction)
    storage.check_output("report", report_path)
    if changes_path:
        storage.check_output("page of changes", changes_path)
    with tempfile.TemporaryDirectory(prefix="prepare-") as scratch:
        with progress.shown("listing", "entries") as found:
            opened = open_source(source, scratch, found.advance)
        total = min(opened.num_images, max_examples or opened.num_images)
        limit = _BadLimit(source, max_bad_fraction)
        if opened.unreadable:
            # Refused before any image is read.
            limit.check(opened.unreadable, len(opened.unreadable), sum(1 for _ in opened.images()))
        with (
            # Without names, because they are as large as the dataset: they vanish with the process, even a killed one.
            tempfile.TemporaryFile(prefix="prepare-") as spill,
            rows_on_disk() as rows,
            storage.committed_directory(output_directory, last=dataset.METADATA_FILE) as directory,
        ):
            rows.add(
                Row(name=name, label=None, split="", identity={}, reason=reason) for name, reason in opened.unreadable
            )
            with progress.shown("reading", "images", total) as read:
                read_all(_sample(opened, max_examples), image_size, spill, rows, read)
            statistics = Statistics(opened.class_names, opened.remarks)
            with (
                image_list.written(directory, opened.class_names) as add_line,
                progress.shown("summing up", "images", total) as summed,
            ):
                for row in rows.by_name():
                    statistics.add(row)
                    add_line(row)
                    summed.advance()
            # A sample is taken from the readable images.
            num_bad = statistics.num_bad_files - (len(opened.unreadable) if max_examples else 0)
            limit.check(statistics.bad_files, num_bad, statistics.num_images)
            _refuse_missing_class(source, opened.class_names, rows)
            if remarks := statistics.describe():
                print(f"note: source {source!r}: {'; '.join(remarks)}", file=sys.stderr)
            rows.set_splits(Splits(rows.contents))
            _refuse_empty_train(source, rows)
            with progress.shown("writing", "images", statistics.num_images) as written:
                dataset_files.write(
                    directory, rows, spill, written, statistics=statistics, image_size=image_size, source=source
                )
            # Before the dataset appears, because one without its report would have to be removed by hand.
            made = dataset.load(str(directory))
            storage.write_output(report_path, report.render(made, source=source))
            if changes_path:
                changed = last_time.write_page(previous_directory, str(directory), changes_path)
                (change_metrics if change_metrics is not None else {}).update(changed)
    return _metadata(made)


def _metadata(made: Dataset) -> dict[str, str | int | float]:
    return {
        "fingerprint": made.fingerprint,
        "num_examples": sum(made.num_examples.values()),
        **{f"num_{split}": count for split, count in made.num_examples.items()},
        "num_classes": made.num_classes,
        "image_size": made.image_size,
        "num_bad_files": made.statistics["num_bad_files"],
    }


def _check_arguments(output_directory: str, image_size: int, max_examples: int, max_bad_fraction: float) -> None:
    if not 8 <= image_size <= 2048:
        raise UserError(f"image_size={quoted(image_size)} is out of range; use 8 to 2048 pixels")
    if not 0 <= max_examples <= _MAX_EXAMPLES:
        raise UserError(f"max_examples={quoted(max_examples)} is out of range; use 0 (all) or a number of images")
    if not 0 <= max_bad_fraction < 1:
        raise UserError(f"max_bad_fraction={max_bad_fraction} is out of range; use 0 or more, below 1, such as 0.1")
    storage.check_folder("output directory", output_directory)
    if storage.is_occupied(output_directory, last=dataset.METADATA_FILE):
        raise UserError(f"output directory {output_directory!r} exists and is not empty; give a new one or remove it")


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


@dataclasses.dataclass(frozen=True)
class _BadLimit:
    """How many images may be bad."""

    source: str
    max_fraction: float

    def check(self, first: Sequence[tuple[str, str]], num_bad: int, num_good: int) -> None:
        """Refuse too many of them.

        Raises:
            UserError: They are.
        """
        num_all = num_bad + num_good
        if num_bad > self.max_fraction * num_all:
            named = "; ".join(f"{name}: {reason}" for name, reason in first[:3])
            raise UserError(
                f"{num_bad} of {num_all} images of {self.source!r} are bad, more than max_bad_fraction="
                f"{self.max_fraction:g} allows ({named}); repair or remove them, or raise max_bad_fraction"
            )


def _refuse_missing_class(source: str, class_names: list[str], rows: Rows) -> None:
    counts = rows.label_counts()
    if missing := [name for label, name in enumerate(class_names) if label not in counts]:
        raise UserError(
            f"class {missing[0]!r} of {source!r} has no usable image; add images, remove the class, or raise"
            " max_examples"
        )


def _refuse_empty_train(source: str, rows: Rows) -> None:
    present = {split for split, _ in rows.split_counts()}
    if missing := [split for split in SPLITS if split not in present]:
        raise UserError(
            f"{source!r} has {rows.num_contents()[0]} distinct images, too few for a {missing[0]} split; give"
            " 3 or more per class"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.prepare", description=__doc__)
    parser.add_argument(
        "source", help="digits, a folder with a sub-folder per class, a .csv or .jsonl of Vertex AI, tfds:NAME"
    )
    parser.add_argument("output_directory", help="a new folder for the dataset")
    parser.add_argument("--report", metavar="FILE", help="HTML report [OUTPUT_DIRECTORY.html]")
    parser.add_argument("--image-size", type=int, default=32, metavar="PIXELS", help="height and width [%(default)s]")
    parser.add_argument(
        "--max-examples", type=int, default=0, metavar="N", help="use at most N images; 0: all [%(default)s]"
    )
    allowed = "fraction of images that may be unreadable [%(default)s]"
    parser.add_argument("--max-bad-fraction", type=float, default=_MAX_BAD_FRACTION, metavar="FRACTION", help=allowed)
    options = parser.parse_args(arguments)
    beside = paths.check("OUTPUT_DIRECTORY", options.output_directory).rstrip("/") + ".html"
    report_path = beside if options.report is None else options.report
    metadata = prepare(
        source=options.source,
        output_directory=options.output_directory,
        report_path=report_path,
        image_size=options.image_size,
        max_examples=options.max_examples,
        max_bad_fraction=options.max_bad_fraction,
    )
    for name, value in metadata.items():
        print(f"{name}: {value}")
    print(f"report: {report_path}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
