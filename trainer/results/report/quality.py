"""Blocks of the dataset's page on its quality: warnings, near-duplicates, bad files."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from exact_resume.files import storage
from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.data.preparing.quality import rejected
from trainer.data.preparing.quality.kinds import ADVICE
from trainer.data.stored.records import Record

_MAX_NAMES = 3
_MAX_DOWNLOAD_BYTES = 2**18
"""A larger list is not embedded in the page."""


def warnings(dataset: Dataset) -> Iterator[page.Block]:
    """Yield a table of the warnings, if there are some."""
    if found := dataset.statistics["quality"]["warnings"]:
        yield page.Table(
            title="Warnings",
            note="These images are used. The parameter strict treats the warnings that it names as errors.",
            columns=["warning", "number", "first names"],
            rows=[
                [f"{kind}: {text}. To do: {ADVICE[kind]}.", number, ", ".join(names[:_MAX_NAMES])]
                for kind, text, number, names in found
            ],
            states=["warn"] * len(found),
        )


def blocks(dataset: Dataset, records: Mapping[str, Record]) -> Iterator[page.Block]:
    """Yield a block for each kind of finding; the number of images and names in it is limited."""
    statistics = dataset.statistics
    found = statistics["quality"]
    if found["near_duplicates"]["pairs"]:
        yield _pairs(found["near_duplicates"], records)
    if conflicts := found["label_conflicts"]:
        yield page.Table(
            title="Images in several classes",
            note=_shown_images(len(conflicts), statistics["num_images_under_several_classes"]),
            columns=["file", "class"],
            rows=[[name, label] for conflict in conflicts for name, label in conflict["images"]],
        )
    if statistics["bad_files"]:
        yield _rejected_table(dataset)


def _pairs(near: dict[str, Any], records: Mapping[str, Record]) -> page.Pairs:
    note = (
        f"Pairs of different files, those in two splits first. {_shown_images(len(near['pairs']), near['num_pairs'])}"
        f" {near['num_across']:,} validation and test images have a near-duplicate in another split;"
        f" {near['num_within']:,} images have one in their own split."
        " near_duplicates.csv in the dataset lists all of them."
    )
    if not near["is_complete"]:
        note += " There may be more, because not all similar images were compared with each other."
    shown = [[_thumbnail(image, records) for image in pair["images"]] for pair in near["pairs"]]
    return page.Pairs(title="Near-duplicates", note=note, pairs=[(one, other) for one, other in shown])


def _thumbnail(image: dict[str, str], records: Mapping[str, Record]) -> page.Thumbnail:
    caption = f"{image['class']} ({image['split']})"
    return page.Thumbnail(image_bytes=records[image["name"]].image_bytes, caption=caption, detail=image["name"])


def _rejected_table(dataset: Dataset) -> page.Table:
    statistics = dataset.statistics
    number, listed = statistics["num_bad_files"], statistics["bad_files"]
    path = os.path.join(dataset.directory, rejected.FILE)
    embedded = None
    if storage.size(path) <= _MAX_DOWNLOAD_BYTES:
        with open(path, "rb") as file:
            text = f"Download all {number:,} as CSV"
            embedded = page.Download(text=text, file_name=rejected.FILE, content=file.read())
    return page.Table(
        title="Bad files",
        note=f"Skipped. {_shown_images(len(listed), number)} {rejected.FILE} in the folder of the dataset lists all.",
        columns=["file", "reason"],
        rows=listed,
        download=embedded,
    )


def _shown_images(number: int, total: int) -> str:
    return f"{number:,} of {total:,} are shown."
