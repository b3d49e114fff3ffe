"""The images of a comparison: never one that a model has seen, and never another one than the original."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from tests.support import tiny_images
from trainer.checkpoints import seen
from trainer.checkpoints.seen import SeenImages
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.prepare import prepare
from trainer.results.comparison import evidence, images
from trainer.results.comparison.not_comparable import NotComparable

NOTHING = seen.of_lines([])


def bytes_of(content_hashes: Iterable[str]) -> SeenImages:
    """Return images of which only the bytes are known."""
    return SeenImages(numbers=np.unique(seen.numbers(content_hashes)), hashes=NOTHING.hashes)


def prepared(source: Path, name: str, max_examples: int = 0) -> Dataset:
    folder = source.with_name(name)
    prepare(
        source=str(source),
        output_directory=str(folder),
        report_path=str(folder.with_suffix(".html")),
        image_size=8,
        max_examples=max_examples,
    )
    return dataset.load(str(folder))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tiny_images.write(tmp_path / "images", 400)
    return tmp_path / "images"


@pytest.fixture
def data(source: Path) -> Dataset:
    return prepared(source, "dataset")


def test_an_image_that_either_model_has_seen_is_left_out(data: Dataset) -> None:
    records = list(data.records("test"))
    first, second, *others = [record.figures.content_hash for record in records]
    found = evidence.of(data, bytes_of([first]), bytes_of([second, first]))
    assert sorted(found.content_hashes.values()) == sorted(others)
    assert found.num_seen == 2
    shown = list(images.prepared_images(data, found))
    assert shown == [(record.image_bytes, data.class_names[record.label]) for record in records[2:]]


def test_test_images_that_another_model_has_trained_on_are_left_out(data: Dataset, source: Path) -> None:
    """The champion's training split has some of today's test images, because its source had splits of its own."""
    for label in range(tiny_images.NUM_CLASSES):
        (source.with_name("split") / "test" / str(label)).mkdir(parents=True)
        (source.with_name("split") / "train").mkdir(exist_ok=True)
        (source.with_name("split") / "train" / str(label)).mkdir()
    in_test = {record.file_name for record in data.records("test")}
    for number, name in enumerate(sorted(path.relative_to(source).as_posix() for path in source.rglob("*.png"))):
        # Every second of today's test images is one of its training images.
        split = "train" if name not in in_test or number % 2 else "test"
        os.link(source / name, source.with_name("split") / split / name)
    champion = seen.of_dataset(prepared(source.with_name("split"), "champion"))
    own = seen.of_dataset(data)
    found = evidence.of(data, own, champion)
    assert 0 < found.num_seen < data.num_examples["test"]
    assert len(found.content_hashes) == data.num_examples["test"] - found.num_seen
    assert not np.isin(seen.numbers(found.content_hashes.values()), seen.union(own, champion).numbers).any()


def photos(folder: Path, numbers: Iterable[int], kind: str, **options: int) -> Path:
    """Write parts of two photographs into two classes."""
    wholes = [Image.fromarray(each) for each in load_sample_images().images]
    for number in numbers:
        path = folder / f"{number % 2}" / f"{number:03}.{kind.lower()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(number)
        left, top, size = random.integers(0, 400), random.integers(0, 200), random.integers(100, 220)
        wholes[number % 2].crop((left, top, left + size, top + size)).save(path, kind, **options)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options", "fraction"),
    [pytest.param("PNG", {"compress_level": 1}, 1.0, marks=pytest.mark.soak), ("JPEG", {"quality": 90}, 0.85)],
)
def test_images_that_were_saved_again_are_seen_and_counted(
    tmp_path: Path, kind: str, options: dict[str, int], fraction: float
) -> None:
    data = prepared(photos(tmp_path / "images", range(200), "PNG"), "dataset")
    again = prepared(photos(tmp_path / "again", range(200), kind, **options), "champion")
    others = prepared(photos(tmp_path / "others", range(200, 400), kind, **options), "different")
    champion, different = (seen.of_lines(image_list.read(each.directory)) for each in (again, others))
    records = list(data.records("test"))
    assert len(records) > 10
    assert evidence.of(data, NOTHING, different).num_seen == 0
    found = evidence.of(data, bytes_of([records[0].figures.content_hash]), champion)
    assert found.num_seen >= 1 + fraction * (len(records) - 1)
    assert found.num_seen == len(records) - len(found.content_hashes)


def test_images_of_few_pixels_are_compared_by_their_bytes_only(data: Dataset) -> None:
    """All images of 2x2 pixels look alike."""
    found = evidence.of(data, seen.of_dataset(data))
    assert found.num_seen == 0


def test_the_originals_come_from_the_source(data: Dataset, source: Path) -> None:
    found = evidence.of(data, NOTHING)
    shown = list(images.originals(data, found, str(source)))
    expected = {(source / name).read_bytes(): name.split("/")[0] for name in found.content_hashes}
    assert dict(shown) == expected
    assert len(shown) == data.num_examples["test"] == len(found.content_hashes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "has changed since prepare"),
        (lambda path: path.unlink(), "originals of 1 test images are missing, such as"),
    ],
)
def test_an_original_that_changed_or_is_gone_ends_the_comparison(
    data: Dataset, source: Path, change: "object", message: str
) -> None:
    found = evidence.of(data, NOTHING)
    change(source / sorted(found.content_hashes)[3])  # type: ignore[operator]
    with pytest.raises(NotComparable, match=message):
        list(images.originals(data, found, str(source)))


def test_a_source_that_is_gone_ends_the_comparison(data: Dataset, source: Path) -> None:
    found = evidence.of(data, NOTHING)
    source.rename(source.with_name("moved"))
    with pytest.raises(NotComparable, match="originals of the test images cannot be read"):
        list(images.originals(data, found, str(source)))


def test_an_image_that_vanishes_after_the_listing_ends_the_comparison(data: Dataset, source: Path) -> None:
    found = evidence.of(data, NOTHING)
    name = sorted(found.content_hashes)[0]
    path = source / name
    # A link to nothing is listed, and cannot be read.
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(NotComparable, match="missing"):
        list(images.originals(data, found, str(source)))
