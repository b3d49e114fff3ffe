"""All forms of a split give the same pixels, random crops included."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from trainer.data import dataset, examples
from trainer.data.batches import Shard, training_batches
from trainer.data.dataset import Dataset
from trainer.data.examples import Examples, ExamplesInMemory, ExamplesOnDisk, RecordReader, load_split
from trainer.data.sampler import NUM_RANDOM_NUMBERS, Sampler
from trainer.data.stored.records import serialize
from trainer.data.stored.shards import DamagedShard, damage_named
from trainer.prepare import prepare


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A prepared dataset of 80x80 pixels, stored as JPEG."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(1)
    for number in range(60):
        (folder / "source" / str(number % 2)).mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        coarse.resize((120, 90), Image.Resampling.BICUBIC).save(folder / "source" / str(number % 2) / f"{number}.jpg")
    prepare(
        source=str(folder / "source"),
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        image_size=80,
    )
    return dataset.load(str(folder / "dataset"))


@pytest.fixture(params=["digits", "photos"])
def data(request: pytest.FixtureRequest) -> Dataset:
    """Each of the two datasets: one stored as PNG, one as JPEG."""
    return request.getfixturevalue(request.param)


def forms(data: Dataset, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Examples]:
    """The training split in memory, on disk, and on disk in blocks."""
    in_memory = load_split(data, "train", **options)
    monkeypatch.setattr("trainer.data.examples.available_bytes", lambda: 0)
    return [in_memory, *(load_split(data, "train", block_size=block, **options) for block in (0, 7))]


def test_the_available_memory_decides_the_form(photos: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small machines are simulated by the memory that they would report."""
    needed = 2 * photos.num_examples["train"] * photos.image_size**2 * 3
    for free, form in ((needed, ExamplesInMemory), (needed - 2, ExamplesOnDisk)):
        monkeypatch.setattr(
            "trainer.data.examples.available_bytes", lambda free=free: free / examples.MEMORY_FRACTION + 0.5
        )
        assert type(load_split(photos, "train")) is form


def test_all_forms_give_the_pixels_that_pillow_gives(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made = forms(data, monkeypatch)
    assert [type(one) for one in made] == [ExamplesInMemory, ExamplesOnDisk, ExamplesOnDisk]
    records = list(data.records("train"))
    indices = np.random.default_rng(2).permutation(len(records))
    for one in made:
        images, labels = one.gather(tf.constant(indices))
        assert np.array_equal(images, [records[i].pixels() for i in indices])
        assert labels.numpy().tolist() == [records[i].label for i in indices]
        assert one.labels.numpy().tolist() == [record.label for record in records]
        assert one.num_examples == len(records)
    assert made[0].num_bytes == len(records) * data.image_size**2 * 3


@pytest.mark.slow
def test_all_forms_give_the_same_crops(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made = forms(data, monkeypatch, crop=True)
    indices = tf.range(made[0].num_examples, dtype=tf.int64)
    random_numbers = tf.random.stateless_uniform([made[0].num_examples, NUM_RANDOM_NUMBERS], seed=[3, 4])
    first = made[0].gather(indices, random_numbers)[0]
    assert not np.array_equal(first, made[0].gather(indices)[0])
    for one in made[1:]:
        assert np.array_equal(first, one.gather(indices, random_numbers)[0])


@pytest.mark.parametrize("block", [0, 7])
def test_batches_from_disk_are_those_from_memory_for_any_number_of_pipelines(
    photos: Dataset, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    in_memory, *_, on_disk = forms(photos, monkeypatch, crop=True)
    order = Sampler(num_examples=in_memory.num_examples, global_batch_size=8, seed=1, block_size=block)
    expected = list(training_batches(in_memory, order, start_step=3, stop_step=20))
    shards = [Shard(pipeline=number, num_pipelines=2) for number in (0, 1)]
    halves = [list(training_batches(on_disk, order, start_step=3, stop_step=20, shard=shard)) for shard in shards]
    for whole, *parts in zip(expected, *halves, strict=True):
        for number in range(5):
            assert np.array_equal(whole[number], np.concatenate([part[number] for part in parts]))


def test_blocks_are_read_once_although_several_threads_use_them(photos: Dataset) -> None:
    count = photos.num_examples["train"]
    reader = RecordReader(photos.shard_paths("train"), num_records=count, block_size=5)
    reads: list[int] = []
    load = reader._load
    reader._load = lambda number: reads.append(number) or load(number)
    expected = [serialize(record) for record in photos.records("train")]
    requests = [np.random.default_rng(n).permutation(count) for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda indices: reader.read(indices, indices[:3]), requests))
    assert all(list(a) == [expected[i] for i in b] for a, b in zip(found, requests, strict=True))
    assert sorted(reads) == list(range(-(-count // 5)))


def test_a_damaged_record_on_disk_is_named_although_tensorflow_raises_its_own_error(
    digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(digits.directory, tmp_path / "data")
    (shard,) = (tmp_path / "data").glob("images-train.array_record-*")
    content = shard.read_bytes()
    shard.write_bytes(content[:5000] + bytes([content[5000] ^ 0xFF]) + content[5001:])
    monkeypatch.setattr("trainer.data.examples.available_bytes", lambda: 0)
    on_disk = load_split(dataset.load(str(tmp_path / "data")), "train")
    read = tf.data.Dataset.range(on_disk.num_examples).batch(16).map(on_disk.gather)
    with (
        pytest.raises(DamagedShard, match=f"^shard {shard} is damaged .*; run prepare again") as caught,
        damage_named(),
    ):
        list(read)
    assert "\n" not in str(caught.value)
