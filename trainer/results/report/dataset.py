"""The report on a dataset: counts, balance, samples of each class, bad files."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainer.data.dataset import Dataset
from trainer.data.pages import charts, page
from trainer.data.preparing.quality import rejected
from trainer.data.preparing.quality.kinds import ADVICE
from trainer.data.splits import SPLITS
from trainer.data.stored.records import Record

_MAX_CLASSES = 40
"""Number of classes that are drawn and sampled; the table lists all of them."""
_NUM_SAMPLES = 40
"""Number of images in the report, spread over the classes."""


_MAX_NAMES = 3


def render(dataset: Dataset, *, source: str, train: Iterable[Record], records: Mapping[str, Record]) -> str:
    """Return the HTML of the report.

    Args:
        dataset: The dataset, whose shards are not read.
        source: The source as the user wrote it, for the subtitle.
        train: The records of the training split in their order, of which few are read.
        records: Records by name, at least of the near-duplicates.
    """
    statistics = dataset.statistics
    blocks: list[page.Block] = [
        page.KeyFigures(
            figures=[
                ("images", f"{sum(dataset.num_examples.values()):,}"),
                *((f"in {split}", f"{dataset.num_examples[split]:,}") for split in SPLITS),
                ("classes", str(dataset.num_classes)),
                ("pixels per image", f"{dataset.image_size}x{dataset.image_size}"),
                ("bad files skipped", str(statistics["num_bad_files"])),
            ]
        ),
        *_warnings(dataset),
        page.Chart(title="Balance", svgs=_charts(dataset)),
        _classes_table(dataset),
        page.Gallery(
            title="Samples", note="From the training split, as the network sees them.", images=_samples(dataset, train)
        ),
        _figures_table(dataset),
        *_findings(dataset, records),
    ]
    if statistics["remarks"]:
        blocks.append(
            page.Table(
                title="Remarks on the source",
                columns=["what", "number", "first names"],
                rows=[[kind, count, ", ".join(names)] for kind, count, names in statistics["remarks"]],
            )
        )
    return page.render(title="Data", subtitle=f"Prepared from {source}", blocks=blocks)


def _charts(dataset: Dataset) -> list[str]:
    statistics = dataset.statistics
    names = list(dataset.class_names)[:_MAX_CLASSES]
    title = "Images per class" + (f" (first {_MAX_CLASSES})" if dataset.num_classes > _MAX_CLASSES else "")
    stacks = {split: [statistics["counts"][name][split] for name in names] for split in SPLITS}
    edges = statistics["original_longer_edge"]
    bounds = edges["upper_bounds_pixels"]
    ranges = [f"≤ {bounds[0]}", *(f"{a + 1}-{b}" for a, b in itertools.pairwise(bounds)), f"> {bounds[-1]}"]
    return [
        charts.bars(title, names, stacks, x_label="images"),
        charts.bars("Longer edge of the originals (pixels)", ranges, {"images": edges["counts"]}, x_label="images"),
    ]


def _classes_table(dataset: Dataset) -> page.Table:
    counts = dataset.statistics["counts"]
    return page.Table(
        title="Classes",
        columns=["class", *SPLITS, "all"],
        rows=[
            [name, *(counts[name][split] for split in SPLITS), sum(counts[name].values())]
            for name in dataset.class_names
        ],
    )


def _samples(dataset: Dataset, train: Iterable[Record]) -> list[page.Thumbnail]:
    names = dataset.class_names[:_MAX_CLASSES]
    wanted = dict.fromkeys(range(len(names)), max(1, _NUM_SAMPLES // len(names)))
    found: list[tuple[int, page.Thumbnail]] = []
    for record in train:
        if wanted.get(record.label):
            wanted[record.label] -= 1
            caption = dataset.class_names[record.label]
            found.append(
                (record.label, page.Thumbnail(image_bytes=record.image_bytes, caption=caption, detail=record.file_name))
            )
        if not any(wanted.values()):
            break
    return [image for _, image in sorted(found, key=lambda pair: pair[0])]


def _figures_table(dataset: Dataset) -> page.Table:
    statistics = dataset.statistics
    smallest, largest = (" x ".join(map(str, statistics[key])) for key in ("smallest_original", "largest_original"))
    return page.Table(
        title="Statistics",
        columns=["statistic", "value"],
        rows=[
            ["smallest original (width x height)", smallest],
            ["largest original (width x height)", largest],
            ["mean of red, green, blue (0 to 255)", ", ".join(f"{value:.1f}" for value in statistics["mean_rgb"])],
            ["standard deviation", ", ".join(f"{value:.1f}" for value in statistics["stddev_rgb"])],
            ["duplicate images", str(statistics["num_repeated_images"])],
            ["images in more than one class", str(statistics["num_images_under_several_classes"])],
            ["skipped files that are not images", str(statistics["num_ignored_files"])],
            ["dataset fingerprint", dataset.fingerprint],
        ],
    )


def _warnings(dataset: Dataset) -> Iterator[page.Block]:
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


def _findings(dataset: Dataset, records: Mapping[str, Record]) -> Iterator[page.Block]:
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


def _pairs(near: dict[str, Any], records: Mapping[str, Record]) -> page.ImagePairs:
    note = (
        f"Pairs of different files, those in two splits first. {_shown_images(len(near['pairs']), near['num_pairs'])}"
        f" {near['num_across']:,} validation and test images have a near-duplicate in another split;"
        f" {near['num_within']:,} images have one in their own split."
        " near_duplicates.csv in the dataset lists all of them."
    )
    if not near["is_complete"]:
        note += " There may be more, because not all similar images were compared with each other."
    shown = [[_thumbnail(image, records) for image in pair["images"]] for pair in near["pairs"]]
    return page.ImagePairs(title="Near-duplicates", note=note, pairs=[(one, other) for one, other in shown])


def _thumbnail(image: dict[str, str], records: Mapping[str, Record]) -> page.Thumbnail:
    caption = f"{image['class']} ({image['split']})"
    return page.Thumbnail(image_bytes=records[image["name"]].image_bytes, caption=caption, detail=image["name"])


def _shown_images(number: int, total: int) -> str:
    return f"{number:,} of {total:,} are shown."
