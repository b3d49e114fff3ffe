"""A split's three forms give the same pixels; random crops too."""

import io
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from trainer.data import augmentation, dataset, examples
from trainer.data.batches import Shard, training_batches
from trainer.data.examples import ExamplesInMemory, ExamplesOnDisk, load_split
from trainer.data.record_reader import RecordReader
from trainer.data.sampler import NUM_RANDOM_NUMBERS, Sampler
from trainer.prepare import prepare


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Prepared pictures of 80 pixels, stored as JPEG."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(1)
    for number in range(60):
        (folder / "source" / str(number % 2)).mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        coarse.resize((120, 90), Image.Resampling.BICUBIC).save(folder / "source" / str(number % 2) / f"{number}.jpg")
    prepare(
        source=str(folder / "source"), output_directory=str(folder / "dataset"), report_path=str(folder / "r.html"),
        image_size=80,
    )  # fmt: skip
    return dataset.load(str(folder / "dataset"))


@pytest.fixture(params=["digits", "photos"])
def data(request):
    return request.getfixturevalue(request.param)


def forms(data, monkeypatch, **options):
    """The split in memory as pixels, in memory as stored, on disk, and on disk in blocks."""
    images, labels = examples._encoded(data, "train")
    encoded = ExamplesInMemory(images=images, labels=labels, image_size=data.image_size, **options)
    in_memory = load_split(data, "train", **options)
    monkeypatch.setattr("trainer.data.memory.available_bytes", lambda: 0)
    on_disk = [load_split(data, "train", block_size=block, **options) for block in (0, 7)]
    return [in_memory, encoded, *on_disk]


def test_the_memory_that_is_there_decides(photos, monkeypatch):
    """Small machines are stood for by what they would say of their memory."""
    pixels = photos.num_examples["train"] * photos.image_size**2 * 3
    encoded = sum(os.path.getsize(path) for path in photos.shard_paths("train"))
    kinds = []
    for wanted in (2 * pixels, 2 * pixels - 2, 2 * encoded, 2 * encoded - 2):
        monkeypatch.setattr(
            "trainer.data.memory.available_bytes", lambda free=wanted: free / examples.MEMORY_FRACTION + 0.5
        )
        loaded = load_split(photos, "train")
        kinds.append(loaded.images.dtype.name if isinstance(loaded, ExamplesInMemory) else "disk")
    assert kinds == ["uint8", "string", "string", "disk"]


def test_all_forms_give_the_pixels_that_pillow_gives(data, monkeypatch):
    made = forms(data, monkeypatch)
    assert [type(one) for one in made] == [ExamplesInMemory] * 2 + [ExamplesOnDisk] * 2
    assert [made[0].images.dtype, made[1].images.dtype] == [tf.uint8, tf.string]
    records = list(data.records("train"))
    order = np.random.default_rng(2).permutation(len(records))
    for one in made:
        images, labels = one.gather(tf.constant(order))
        assert np.array_equal(images, [records[i].pixels() for i in order])
        assert labels.numpy().tolist() == [records[i].label for i in order]
        assert one.labels.numpy().tolist() == [record.label for record in records]
        assert one.num_examples == len(records)
    assert made[0].num_bytes == len(records) * data.image_size**2 * 3
    assert made[1].num_bytes == sum(len(record.image_bytes) for record in records)


def test_all_forms_give_the_same_crops(data, monkeypatch):
    made = forms(data, monkeypatch, crop=True)
    indices = tf.range(made[0].num_examples, dtype=tf.int64)
    draws = tf.random.stateless_uniform([made[0].num_examples, NUM_RANDOM_NUMBERS], seed=[3, 4])
    first = made[0].gather(indices, draws)[0]
    assert not np.array_equal(first, made[0].gather(indices)[0])
    for one in made[1:]:
        assert np.array_equal(first, one.gather(indices, draws)[0])


@pytest.mark.parametrize("block", [0, 7])
def test_batches_from_disk_are_those_from_memory_for_any_number_of_pipelines(photos, monkeypatch, block):
    in_memory, *_, on_disk = forms(photos, monkeypatch, crop=True)
    order = Sampler(num_examples=in_memory.num_examples, global_batch_size=8, seed=1, block_size=block)
    wanted = list(training_batches(in_memory, order, start_step=3, stop_step=20))
    halves = [
        list(training_batches(on_disk, order, start_step=3, stop_step=20, shard=Shard(pipeline=n, num_pipelines=2)))
        for n in (0, 1)
    ]
    for whole, *parts in zip(wanted, *halves, strict=True):
        for number in range(5):
            assert np.array_equal(whole[number], np.concatenate([part[number] for part in parts]))


def test_crops_lie_inside_and_cover_all_sizes():
    draws = tf.random.stateless_uniform([4000, NUM_RANDOM_NUMBERS], seed=[1, 2])
    top, left, height, width = np.asarray(augmentation.crop_boxes(draws, 100)).T
    assert min(top.min(), left.min()) == 0
    assert (top + height).max() == (left + width).max() == 100
    assert min(height.min(), width.min()) >= 20
    areas = height * width / 100**2
    assert areas.min() < 0.1
    assert areas.max() > 0.9
    whole = tf.constant([[0, 0, 0, 0.999999, 0.5, 0.5, 0.5]], tf.float32)
    assert np.asarray(augmentation.crop_boxes(whole, 64)).tolist() == [[0, 0, 64, 64]]


def test_a_whole_crop_is_the_image_itself(photos):
    record = next(photos.records("train"))
    image = tf.io.decode_and_crop_jpeg(record.image_bytes, [0, 0, 80, 80], channels=3, dct_method="INTEGER_ACCURATE")
    assert np.array_equal(augmentation.enlarge(image, 80), np.asarray(Image.open(io.BytesIO(record.image_bytes))))


def test_blocks_are_read_once_while_they_are_wanted_by_several_threads(photos):
    count = photos.num_examples["train"]
    reader = RecordReader(photos.shard_paths("train"), num_records=count, block_size=5)
    reads = []
    load = reader._load
    reader._load = lambda number: reads.append(number) or load(number)
    expected = [dataset.serialize(record) for record in photos.records("train")]
    wanted = [np.random.default_rng(n).permutation(count) for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda indices: reader.read(indices, indices[:3]), wanted))
    assert all(list(a) == [expected[i] for i in b] for a, b in zip(found, wanted, strict=True))
    assert sorted(reads) == list(range(-(-count // 5)))
