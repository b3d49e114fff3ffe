"""The report on the data: counts, balance, samples of each class, bad files."""

from __future__ import annotations

import itertools

from trainer.data.dataset import Dataset
from trainer.data.sources import SPLITS
from trainer.results import report
from trainer.results.report import charts

_MAX_CLASSES = 40
"""So many classes are drawn and shown; the table has all."""
_SAMPLES = 40
"""Pictures in all, spread over the classes."""


def render(dataset: Dataset, *, source: str) -> str:
    """HTML of the report.

    Args:
        dataset: as prepared.
        source: what the user named; for the title.
    """
    statistics = dataset.statistics
    counts = statistics["counts"]
    blocks: list[report.Block] = [
        report.Figures(
            figures=[
                ("images", f"{sum(dataset.num_examples.values()):,}"),
                *((f"in {split}", f"{dataset.num_examples[split]:,}") for split in SPLITS),
                ("classes", str(dataset.num_classes)),
                ("pixels an image", f"{dataset.image_size}x{dataset.image_size}"),
                ("bad files skipped", str(statistics["num_bad_files"])),
            ]
        ),
        report.Chart(title="Balance", svgs=_charts(dataset)),
        report.Table(
            title="Classes",
            columns=["class", *SPLITS, "all"],
            rows=[
                [name, *(counts[name][s] for s in SPLITS), sum(counts[name].values())] for name in dataset.class_names
            ],
        ),
        report.Pictures(
            title="Samples", note="From the training split, as the network sees them.", pictures=_samples(dataset)
        ),
        _figures_table(dataset),
    ]
    if statistics["bad_files"]:
        more = statistics["num_bad_files"] - len(statistics["bad_files"])
        blocks.append(
            report.Table(
                title="Bad files",
                note="Skipped." + (f" {more} more are not named here." if more else ""),
                columns=["file", "reason"],
                rows=statistics["bad_files"],
            )
        )
    return report.page(title="Data", subtitle=f"Prepared from {source}", blocks=blocks)


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


def _samples(dataset: Dataset) -> list[report.Picture]:
    names = dataset.class_names[:_MAX_CLASSES]
    wanted = dict.fromkeys(range(len(names)), max(1, _SAMPLES // len(names)))
    found: list[tuple[int, report.Picture]] = []
    for record in dataset.records("train"):
        if wanted.get(record.label):
            wanted[record.label] -= 1
            caption = dataset.class_names[record.label]
            found.append(
                (record.label, report.Picture(image_bytes=record.image_bytes, caption=caption, detail=record.file_name))
            )
        if not any(wanted.values()):
            break
    return [picture for _, picture in sorted(found, key=lambda pair: pair[0])]


def _figures_table(dataset: Dataset) -> report.Table:
    statistics = dataset.statistics
    width_height = [" x ".join(map(str, statistics[key])) for key in ("smallest_original", "largest_original")]
    return report.Table(
        title="Figures",
        columns=["what", "value"],
        rows=[
            ["smallest and largest original (width x height)", f"{width_height[0]}; {width_height[1]}"],
            ["mean of red, green, blue (0 to 255)", ", ".join(f"{value:.1f}" for value in statistics["mean_rgb"])],
            ["standard deviation", ", ".join(f"{value:.1f}" for value in statistics["stddev_rgb"])],
            ["images that repeat another", str(statistics["num_repeated_images"])],
            ["images found under several classes", str(statistics["num_images_under_several_classes"])],
            ["files that are no images, passed over", str(statistics["num_ignored_files"])],
            ["fingerprint of the dataset", dataset.fingerprint],
        ],
    )
