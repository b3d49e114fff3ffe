"""Blocks of the dataset's page on its quality: warnings, near-duplicates, bad files."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.data.preparing.quality import rejected
from trainer.data.preparing.quality.kinds import ADVICE
from trainer.data.stored.records import Record

_MAX_NAMES = 3


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
    if bad := statistics["bad_files"]:
        shown = _shown_images(len(bad), statistics["num_bad_files"])
        yield page.Table(
            title="Bad files",
            note=f"Skipped. {shown} {rejected.FILE} in the folder of the dataset lists all.",
            columns=["file", "reason"],
            rows=bad,
        )


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


def _shown_images(number: int, total: int) -> str:
    return f"{number:,} of {total:,} are shown."
