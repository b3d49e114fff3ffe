"""What a model has seen is known for as long as the model, or counts as unknown."""

import dataclasses
import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import tiny_images
from trainer.checkpoints import seen, starting_weights
from trainer.checkpoints.seen import SeenImages
from trainer.checkpoints.starting_weights import StartingWeights
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.loop import warm_start
from trainer.prepare import prepare


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("seen")
    tiny_images.write(folder / "images", 120)
    prepare(
        source=str(folder / "images"),
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        image_size=8,
    )
    return dataset.load(str(folder / "dataset"))


def known(*numbers: int) -> SeenImages:
    """Return images with these numbers, and one perceptual hash."""
    return SeenImages(numbers=np.array(numbers, np.uint64), hashes=np.full((1, 64), numbers[0], np.int8))


def weights(images: SeenImages | None) -> StartingWeights:
    return StartingWeights(model="convnet", class_names=("a", "b"), arrays=[np.ones(2, np.float32)], seen_images=images)


def test_training_and_validation_images_are_seen_and_test_images_are_not(data: Dataset) -> None:
    hashes = {split: {record.figures.content_hash for record in data.records(split)} for split in data.shards}
    expected = sorted(int(each[:16], 16) for each in hashes["train"] | hashes["validation"])
    found = seen.of_dataset(data)
    assert found.numbers.tolist() == expected
    assert len(hashes["validation"]) > 1
    assert not np.isin(seen.numbers(hashes["test"]), found.numbers).any()


def test_the_files_have_the_first_bytes_of_each_sha_256_in_order_and_the_perceptual_hashes(tmp_path: Path) -> None:
    digests = [hashlib.sha256(bytes([number])).hexdigest() for number in range(50)]
    lines = [{"content_hash": each, "perceptual_hash": each * 2, "width": 8, "height": 9} for each in digests]
    made = seen.of_lines([*lines, lines[7]])
    seen.write(tmp_path / "f", made)
    assert (tmp_path / "f").read_bytes() == b"".join(sorted(bytes.fromhex(each)[:8] for each in digests))
    second = (tmp_path / "f_perceptual").read_bytes()
    assert sorted(second[at : at + 64] for at in range(0, len(second), 64)) == sorted(
        bytes.fromhex(each * 2) for each in digests
    )
    read = seen.read(tmp_path / "f")
    assert read is not None
    assert np.array_equal(read.numbers, made.numbers)
    assert np.array_equal(read.hashes, made.hashes)


def test_a_missing_damaged_or_empty_file_is_unknown(tmp_path: Path) -> None:
    """Every model has seen some images, so an empty file has lost its content."""
    assert seen.read(tmp_path / "absent") is None
    for number, content in enumerate((b"", b"123", b"\1" * 8 + b"\0" * 8, b"\1" * 16)):
        (tmp_path / str(number)).write_bytes(content)
        (tmp_path / f"{number}_perceptual").write_bytes(bytes(64))
        assert seen.read(tmp_path / str(number)) is None
    seen.write(tmp_path / "f", known(5))
    for content in (b"123", b"", b"\2" * 64 + b"\1" * 64, b"\1" * 128):
        (tmp_path / "f_perceptual").write_bytes(content)
        assert seen.read(tmp_path / "f") is None
    (tmp_path / "f_perceptual").unlink()
    assert seen.read(tmp_path / "f") is None


def test_what_a_model_has_seen_of_tiny_images_only_is_known(data: Dataset, tmp_path: Path) -> None:
    """None of them has a perceptual hash, but the second file is not empty."""
    seen.write(tmp_path / "f", seen.of_dataset(data))
    found = seen.read(tmp_path / "f")
    assert found is not None
    tiny = [{"content_hash": "f" * 64, "width": 2, "height": 2}]
    assert not found.includes(tiny).any()


def test_a_dataset_without_hashes_of_its_images_leaves_no_record(data: Dataset, tmp_path: Path) -> None:
    """An empty record would count as unknown later, without a reason in the log of the training."""
    with gzip.open(Path(data.directory) / "images.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    (tmp_path / "dataset").mkdir()
    with gzip.open(tmp_path / "dataset" / "images.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(line | {"split": "test"}) + "\n" for line in lines)
    without = dataclasses.replace(data, directory=str(tmp_path / "dataset"))
    assert "lists no image of its training split" in seen.record(str(tmp_path / "run"), without, [])
    assert not (tmp_path / "run" / seen.FILE).exists()


def test_a_chain_of_starts_keeps_what_its_first_model_has_seen(data: Dataset, tmp_path: Path) -> None:
    """The first model's images are in the third one's record, and a copy survives the deletion of its source."""
    first = known(1, 2, 3)
    starting_weights.pin(weights(first), str(tmp_path / "copy"))
    second, third = tmp_path / "second", tmp_path / "third"
    digest = weights(first).digest
    assert seen.record(str(second), data, warm_start.records_of_seen_images(digest, str(tmp_path / "copy"))) == ""
    starting_weights.pin(weights(seen.read(second / seen.FILE)), str(tmp_path / "other"))
    assert seen.record(str(third), data, warm_start.records_of_seen_images(digest, str(tmp_path / "other"))) == ""
    found = seen.read(third / seen.FILE)
    assert found is not None
    assert np.isin(np.concatenate([first.numbers, seen.of_dataset(data).numbers]), found.numbers).all()
    assert set(map(bytes, first.hashes)) <= set(map(bytes, found.hashes))


def test_a_start_from_weights_without_a_record_leaves_none_not_even_of_an_earlier_attempt(
    data: Dataset, tmp_path: Path
) -> None:
    assert seen.record(str(tmp_path), data, []) == ""
    assert "starting weights" in seen.record(str(tmp_path), data, [str(tmp_path / "absent")])
    assert not (tmp_path / seen.FILE).exists()


def test_a_resumed_training_keeps_its_record_when_its_source_is_gone(data: Dataset, tmp_path: Path) -> None:
    seen.write(tmp_path / seen.FILE, known(7))
    # Any checkpoint.
    starting_weights.pin(weights(None), str(tmp_path))
    assert seen.record(str(tmp_path), data, [str(tmp_path / "absent")]) == ""
    found = seen.read(tmp_path / seen.FILE)
    assert found is not None
    assert found.numbers.tolist() == [7]


def test_weights_that_are_copied_again_get_the_record_that_an_earlier_version_did_not_make(tmp_path: Path) -> None:
    starting_weights.pin(weights(None), str(tmp_path))
    assert starting_weights.read(str(tmp_path), weights(None).digest).seen_images is None
    starting_weights.pin(weights(known(5)), str(tmp_path))
    found = starting_weights.read(str(tmp_path), weights(None).digest).seen_images
    assert found is not None
    assert found.numbers.tolist() == [5]


def test_a_file_of_weights_brings_the_record_that_is_beside_it(tmp_path: Path) -> None:
    path = str(tmp_path / "model.keras")
    assert warm_start.records_of_seen_images(path, "") == []
    seen.write(tmp_path / seen.FILE, known(5))
    assert warm_start.records_of_seen_images(path, "") == [str(tmp_path / seen.FILE)]
    assert warm_start.records_of_seen_images("imagenet", "") == []


def test_signatures_stay_with_the_checkpoints(tmp_path: Path) -> None:
    """An exported model may be public, and thumbnails show what it was trained on."""
    images = dataclasses.replace(known(5), described=np.full((1, 968), 7, np.uint8))
    seen.write(tmp_path / "own", images)
    seen.write(tmp_path / "public", images, is_public=True)
    assert not (tmp_path / "public_signatures").exists()
    found, public = seen.read(tmp_path / "own"), seen.read(tmp_path / "public")
    assert found is not None
    assert public is not None
    assert np.array_equal(found.described, images.described)
    assert len(public.described) == 0
    # Damaged: hashes decide.
    (tmp_path / "own_signatures").write_bytes(bytes(967))
    damaged = seen.read(tmp_path / "own")
    assert damaged is not None
    assert len(damaged.described) == 0
