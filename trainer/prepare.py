"""Prepare a dataset: read, check, resize, split and write images, with a report."""

import dataclasses
import functools
import os
import sys
from collections.abc import MutableMapping
from typing import Any

from exact_resume.files import publication, storage
from exact_resume.files.bucket_errors import Replaced
from localvertex._base.userinput import cli, paths
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.data import changes, dataset
from trainer.data.preparing import dataset_files, parts
from trainer.data.preparing.attempt import PreparedResult, PrepareRequest, attempt
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import beam, factory
from trainer.data.preparing.previous import history as histories
from trainer.data.preparing.previous.dataset import PreviousDataset
from trainer.data.preparing.previous.history import HistoryEntry, NoHistory, ReadOnlyHistory, Unusable
from trainer.data.preparing.quality.kinds import TEXTS, parse_strict
from trainer.files import outputs
from trainer.results.report import dataset as report
from trainer.settings import BELOW_ONE, check

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
    pipeline_root: str = "",
    reread: bool = False,
    dataflow: Settings | None = None,
    strict: str = "",
    changes_path: str = "",
    change_metrics: MutableMapping[str, Any] | None = None,
) -> dict[str, str | int | float]:
    """Make the prepared dataset; it appears complete or not at all.

    Args:
        source: One of digits, a folder with a sub-folder per class, a manifest, or a folder of manifests (local or
            gs://), or tfds:NAME.
        output_directory: A folder that does not exist yet or is empty, local or gs://.
        report_path: File for the HTML report.
        image_size: Height and width of the prepared images in pixels.
        max_examples: Use at most this many images, evenly over the classes; 0: all.
        max_bad_fraction: Fraction of images that may be unreadable; they are skipped, counted and named.
        pipeline_root: Folder, local or gs://, whose `prepared/` outlives this run: images that have not changed since
            the previous dataset, or since a killed attempt, are not read again. Empty: all are read.
        reread: Read all images, including those that have not changed.
        dataflow: Settings of the Dataflow job whose workers read the images; None to read them on this machine.
        strict: Comma-separated names of warnings that count as errors, such as leaks,label-conflicts.
        changes_path: File for the page on what changed since the previous dataset; empty for none.
        change_metrics: Receives the figures of that page.

    Returns:
        The metadata fingerprint, num_examples, num_train, num_validation, num_test, num_classes, image_size,
            num_bad_files; with a pipeline root also num_read, the number of images that were read.

    Raises:
        UserError: The source cannot be used, too many of its images are bad, or a strict warning applies.
    """
    strict_names = parse_strict(strict)
    if pipeline_root.startswith("gs://") and output_directory.startswith("/gcs/"):
        # Through the mount, the server could not copy objects.
        output_directory = output_directory.replace("/gcs/", "gs://", 1)
    check("image_size", image_size, range(8, 2049))
    check("max_examples", max_examples, range(_MAX_EXAMPLES + 1))
    check("max_bad_fraction", max_bad_fraction, BELOW_ONE)
    outputs.check_folder("output directory", output_directory)
    outputs.check_file("report", report_path)
    if changes_path:
        outputs.check_file("page of changes", changes_path)
    if pipeline_root:
        outputs.check_folder("pipeline root", pipeline_root)
    wanted = PrepareRequest(
        source=source,
        output_directory=output_directory,
        image_size=image_size,
        max_examples=max_examples,
        max_bad_fraction=max_bad_fraction,
        make_engine=functools.partial(factory.make, dataflow),
        write_report=lambda made, train, records: outputs.write(
            report_path, report.render(made, source=source, train=train, records=records)
        ),
        strict=strict_names,
        write_changes=functools.partial(changes.write, changes_path, {} if change_metrics is None else change_metrics),
    )
    history = histories.of(pipeline_root, source=source, image_size=image_size, max_examples=max_examples)
    if pipeline_root:
        _check_state(pipeline_root, history, output_directory)
    is_occupied = publication.is_occupied(output_directory, last=dataset.METADATA_FILE, own=dataset_files.OWN)
    made = _finished_dataset(wanted, history) if is_occupied else _prepare(wanted, history, reread=reread)
    if not pipeline_root:
        return _metadata(made)
    # Killed attempts leave parts and work items.
    storage.remove_tree(storage.join(history.parts, beam.WORK))
    parts.remove(history.parts)
    # At the end, because until then another attempt may finish this one.
    history.write(dataclasses.replace(made.entry, is_published=True), *made.previous)
    print(f"note: {made.num_read:,} images read", file=sys.stderr)
    return _metadata(made) | {"num_read": made.num_read}


def _prepare(wanted: PrepareRequest, history: NoHistory, *, reread: bool = False) -> PreparedResult:
    if reread:
        # Without parts, because the parts of a killed attempt would not be read again.
        return attempt(wanted, history, is_trusted=False, parts_folder="")
    try:
        return attempt(wanted, history, is_trusted=True, parts_folder=history.parts)
    except (Unusable, Replaced) as error:
        print(f"note: the previous dataset cannot be used ({error}); all images are read again", file=sys.stderr)
        return attempt(wanted, history, is_trusted=False, parts_folder=history.parts)


def _finished_dataset(wanted: PrepareRequest, history: NoHistory) -> PreparedResult:
    """Return the dataset in the output folder if a killed attempt published it and it has not changed.

    Raises:
        UserError: The folder contains something else.
    """
    if (expected := history.unfinished_entry(wanted.address)) and _is_there(expected, wanted):
        previous = history.read()[1:2]
        before = "".join(entry.dataset for entry in previous)
        with storage.scratch("prepare") as scratch:
            # The killed attempt has written the report; its figures on changes are lost.
            elsewhere = dataclasses.replace(
                wanted,
                output_directory=str(scratch / "again"),
                write_report=lambda made, train, records: None,
                write_changes=lambda folder, address, directory: wanted.write_changes(before, before, directory),
            )
            again = _prepare(elsewhere, ReadOnlyHistory(history))
        if again.entry.is_equal(expected):
            return dataclasses.replace(again, entry=expected, previous=tuple(previous))
    raise UserError(f"output folder {wanted.output_directory!r} exists and is not empty; give a new one or remove it")


def _is_there(entry: HistoryEntry, wanted: PrepareRequest) -> bool:
    """Return whether a dataset is complete; its attempt may have been killed before it published it."""
    with storage.scratch("prepare") as scratch:
        try:
            PreviousDataset(entry, scratch, image_size=wanted.image_size).close()
        except Unusable:
            return False
    return True


def _metadata(made: PreparedResult) -> dict[str, str | int | float]:
    return {
        "fingerprint": made.dataset.fingerprint,
        "num_examples": sum(made.dataset.num_examples.values()),
        **{f"num_{split}": count for split, count in made.dataset.num_examples.items()},
        "num_classes": made.dataset.num_classes,
        "image_size": made.dataset.image_size,
        "num_bad_files": made.dataset.statistics["num_bad_files"],
    }


def _check_state(pipeline_root: str, history: NoHistory, output_directory: str) -> None:
    """Refuse, before all work, what would fail at its end."""
    outputs.check_folder("pipeline root", history.folder)
    outputs.check_folder("pipeline root", history.parts)
    folder, output = (
        path.rstrip("/") if storage.is_remote(path) else os.path.realpath(path)
        for path in (history.folder, output_directory)
    )
    if f"{folder}/".startswith(f"{output}/"):
        raise UserError(
            f"pipeline root {pipeline_root!r} is in the output folder {output_directory!r}, which has to be empty;"
            " give another one"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.prepare", description=__doc__)
    parser.add_argument(
        "source", help="digits, tfds:NAME, a folder with a sub-folder per class, or Vertex AI's .csv or .jsonl files"
    )
    parser.add_argument("output_directory", help="a new folder for the dataset")
    parser.add_argument("--report", metavar="FILE", help="HTML report [OUTPUT_DIRECTORY.html]")
    parser.add_argument("--image-size", type=int, default=32, metavar="PIXELS", help="height and width [%(default)s]")
    parser.add_argument(
        "--max-examples", type=int, default=0, metavar="N", help="use at most N images; 0: all [%(default)s]"
    )
    allowed = "fraction of images that may be unreadable [%(default)s]"
    parser.add_argument("--max-bad-fraction", type=float, default=_MAX_BAD_FRACTION, metavar="FRACTION", help=allowed)
    kept = "folder, local or gs://, that is kept between runs, so that the next one reads only new images"
    parser.add_argument("--pipeline-root", metavar="FOLDER", help=kept)
    parser.add_argument("--reread", action="store_true", help="read all images, including unchanged ones")
    kinds = f"comma-separated names of warnings to treat as errors: {', '.join(TEXTS)}"
    parser.add_argument("--strict", default="", metavar="NAMES", help=kinds)
    options = parser.parse_args(arguments)
    beside = paths.check("OUTPUT_DIRECTORY", options.output_directory).rstrip("/") + ".html"
    report_path = beside if options.report is None else options.report
    given = options.pipeline_root
    pipeline_root = "" if given is None else paths.check("--pipeline-root", given)
    metadata = prepare(
        source=options.source,
        output_directory=options.output_directory,
        report_path=report_path,
        image_size=options.image_size,
        max_examples=options.max_examples,
        max_bad_fraction=options.max_bad_fraction,
        strict=options.strict,
        pipeline_root=pipeline_root,
        reread=options.reread,
    )
    for name, value in metadata.items():
        print(f"{name}: {value}")
    print(f"report: {report_path}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
