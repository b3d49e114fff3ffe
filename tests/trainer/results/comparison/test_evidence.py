"""Which test images count: each independent of the others, and seen by no model."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.checkpoints import seen
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.prepare import prepare
from trainer.results.comparison import evidence

SIZE = 48


def noise(number: int) -> Image.Image:
    """A different image of fine and coarse structure for each number."""
    random = np.random.default_rng(number)
    coarse = Image.fromarray(random.integers(0, 256, (9, 9, 3), np.uint8))
    smooth = coarse.resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    fine = random.normal(0, 12, (SIZE, SIZE, 3))
    return Image.fromarray((np.asarray(smooth) + fine).clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str = "PNG", **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def prepared(tmp_path: Path, **files: bytes) -> Dataset:
    """Prepare files whose names are SPLIT__CLASS__NAME; training and validation have images of their own, too."""
    source = tmp_path / "source"
    others = {
        f"{split}__{label}__own{number}": encoded(noise(1000 + 100 * index + number))
        for index, (split, label) in enumerate((s, c) for s in ("train", "validation") for c in "ab")
        for number in range(3)
    }
    for name, content in (others | files).items():
        path = source.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".png" if content.startswith(b"\x89") else ".jpg").write_bytes(content)
    prepare(
        source=str(source),
        output_directory=str(tmp_path / "data"),
        report_path=str(tmp_path / "data.html"),
        image_size=SIZE,
    )
    return dataset.load(str(tmp_path / "data"))


def counted(data: Dataset, *known: seen.SeenImages) -> tuple[set[str], int, int]:
    """Return the names of the evidence, and how many were seen or are copies."""
    found = evidence.of(data, seen.of_dataset(data), *known)
    shown = {record.file_name for _, record in found.chosen(data.records("test"))}
    assert shown == set(found.content_hashes)
    return {Path(name).stem for name in shown}, found.num_seen, found.num_copies


def test_equal_pixels_in_other_bytes_are_one_image(tmp_path: Path) -> None:
    files = {f"test__a__copy{number}": encoded(noise(1)) + bytes(number) for number in range(1, 7)}
    data = prepared(tmp_path, **files, test__b__other=encoded(noise(2)))
    assert counted(data) == ({"copy1", "other"}, 0, 5)


def test_an_image_in_two_classes_has_no_right_answer(tmp_path: Path) -> None:
    both = encoded(noise(1))
    data = prepared(tmp_path, test__a__one=both, test__b__one=both, test__a__fair=encoded(noise(3)))
    assert counted(data) == ({"fair"}, 0, 2)


def test_a_training_image_that_was_saved_again_is_no_evidence(tmp_path: Path) -> None:
    data = prepared(
        tmp_path,
        test__a__leak=encoded(noise(1000), "JPEG", quality=95),
        test__b__fair=encoded(noise(5)),
    )
    assert counted(data) == ({"fair"}, 1, 0)


def test_what_another_model_has_seen_is_no_evidence(tmp_path: Path) -> None:
    data = prepared(tmp_path / "new", test__a__old=encoded(noise(7)), test__b__fair=encoded(noise(8)))
    champion = prepared(tmp_path / "old", train__a__same=encoded(noise(7)), test__a__x=encoded(noise(9)))
    assert counted(data, seen.of_dataset(champion)) == ({"fair"}, 1, 0)


def test_the_message_has_both_counts() -> None:
    found = evidence.Evidence(content_hashes={}, num_seen=3, num_copies=1400)
    assert found.left_out == "1,400 copies left out, 3 left out because a model has seen them"


def test_without_a_list_of_seen_images_nothing_is_evidence(tmp_path: Path) -> None:
    with pytest.raises(evidence.NotComparable, match="not known which images the champion has seen"):
        evidence.seen_by("champion", tmp_path / seen.FILE)
