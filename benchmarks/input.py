"""Images per second and core of the trainer's input, compared with the pipeline of Google's multi-worker codelab.

Run it as `python -m benchmarks.input`. It makes its own images (`photographs.py`). In every epoch, the codelab's
pipeline decodes each image, resizes it to 300x300, casts to float32, shuffles and batches. The trainer reads the
dataset that `trainer.prepare` made from the same images, at the same size. All run on one core and take turns; the
figures are medians. NumPy gathering as many bytes from 1 GiB shows the speed of the memory.

The presets of augmentation change images that are in memory, and Keras' RandAugment changes the same batches in
`tf.data`'s map. Their ratios are of images per second of processor time, because other programs share the core.
"""

import argparse
import contextlib
import io
import json
import os
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks import photographs
from benchmarks.measuring import Clock, load, parse
from trainer.data import dataset
from trainer.data.augmentation.layers import Augmentation
from trainer.data.augmentation.presets import PRESETS
from trainer.data.batches import training_batches
from trainer.data.examples import Examples, ExamplesInMemory, ExamplesOnDisk, RecordReader
from trainer.data.sampler import Sampler
from trainer.prepare import prepare

_SIZE = 300
_BATCH_SIZE = 32
_IN_MEMORY, _RAND_AUGMENT = "prepared, pixels in memory", "... Keras' RandAugment in map"


class Rate(NamedTuple):
    """Images per second."""

    wall: float
    cpu: float
    """Per second of processor time."""


def _codelab_batches(folder: Path) -> tf.data.Dataset:
    """Return the codelab's pipeline on the original files, which are in memory so that reading them is free."""
    files = sorted(folder.rglob("*.jpg"))
    encoded = tf.data.Dataset.from_tensor_slices(
        ([file.read_bytes() for file in files], [int(file.parent.name) for file in files])
    )

    def preprocess(data: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [_SIZE, _SIZE])
        return tf.cast(image, tf.float32) / 255.0, label

    mapped = encoded.repeat().map(preprocess, num_parallel_calls=tf.data.AUTOTUNE)
    return mapped.shuffle(256).batch(_BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def _trainer_batches(examples: Examples, preset: str = "") -> tf.data.Dataset:
    """Return the trainer's endless batches of a split."""
    sampler = Sampler(num_examples=examples.num_examples, global_batch_size=_BATCH_SIZE, seed=0)
    augmentation = Augmentation(json.loads(PRESETS[preset]) if preset else [], image_size=_SIZE, num_classes=10)
    return training_batches(examples, sampler, augmentation, start_step=0, stop_step=10**9)


def _rate(batches: tf.data.Dataset, seconds: float) -> Rate:
    """Measure images per second, after the first batches have filled the buffers."""
    iterator = iter(batches)
    for _ in range(2):
        next(iterator)
    return _count(lambda: next(iterator), seconds)


def _gather_rate(pixels: np.ndarray, seconds: float) -> Rate:
    """Measure images per second of a plain gather from memory to memory."""
    random = np.random.default_rng(0)
    return _count(lambda: pixels[random.integers(0, len(pixels), _BATCH_SIZE)], seconds)


def _count(make_batch: Callable[[], object], seconds: float) -> Rate:
    clock, count = Clock(), 0
    while clock.took().seconds < seconds:
        make_batch()
        count += _BATCH_SIZE
    took = clock.took()
    return Rate(count / took.seconds, count / took.cpu_seconds)


def _variants(folder: Path, num_cached: int) -> dict[str, Callable[[float], Rate]]:
    """Return what is measured, by name; each function takes the seconds to measure for."""
    with contextlib.redirect_stdout(io.StringIO()):
        prepare(
            source=str(folder / "source"),
            output_directory=str(folder / "dataset"),
            report_path=str(folder / "report.html"),
            image_size=_SIZE,
        )
    data = dataset.load(str(folder / "dataset"))
    pixels = np.random.default_rng(0).integers(0, 256, (num_cached, _SIZE, _SIZE, 3), dtype=np.uint8)
    cached = ExamplesInMemory(images=tf.constant(pixels), labels=tf.zeros(num_cached, tf.int32), image_size=_SIZE)
    count = data.num_examples["train"]
    reader = RecordReader(data.shard_paths("train"), num_records=count, block_size=0)
    rand_augment = keras.layers.RandAugment(seed=0)
    on_disk = ExamplesOnDisk(reader, num_examples=count, image_size=_SIZE)
    made = {
        "codelab's pipeline": _codelab_batches(folder / "source"),
        "prepared, on disk": _trainer_batches(on_disk),
        _IN_MEMORY: _trainer_batches(cached),
        **{f"... augmentation {preset}": _trainer_batches(cached, preset) for preset in PRESETS},
        _RAND_AUGMENT: _trainer_batches(cached).map(lambda images, *_: rand_augment(images, training=True)),
    }
    measured: dict[str, Callable[[float], Rate]] = {name: partial(_rate, batches) for name, batches in made.items()}
    return measured | {"NumPy gather, no pipeline": partial(_gather_rate, pixels)}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each measurement [%(default)s]")
    parser.add_argument("--cached", type=int, default=4000, help="images in memory: 1 GiB, more than any cache")
    options = parse(parser, images=60, repeats=1, seconds=0.05, cached=64)
    # Before TensorFlow creates its threads, at the first operation.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder:
        photographs.make(Path(folder) / "source", options.images)
        measured = _variants(Path(folder), options.cached)
        source_bytes = statistics.mean(path.stat().st_size for path in Path(folder).rglob("*.jpg"))
        shards = list((Path(folder) / "dataset").glob("*.array_record*"))
        stored_bytes = sum(path.stat().st_size for path in shards) / options.images
        rates: dict[str, list[Rate]] = {name: [] for name in measured}
        clock = Clock()
        for _ in range(options.repeats):
            for name, measure in measured.items():
                rates[name].append(measure(options.seconds))
    print(f"all measurements together:{clock.took()}; load average {load()}")
    medians = {name: Rate(*map(statistics.median, zip(*values, strict=True))) for name, values in rates.items()}
    first = next(iter(medians.values()))
    print(f"images of {source_bytes / 1e3:.0f} kB, prepared {stored_bytes / 1e3:.0f} kB")
    print(f"{_SIZE}x{_SIZE}, batches of {_BATCH_SIZE}, one core; images per second, median of {options.repeats} rounds")
    for name, (wall, cpu) in medians.items():
        print(
            f"{name:<28} {wall:9,.0f} {wall / first.wall:7.2f} times the codelab's; per second of processor time"
            f" {cpu:9,.0f} {cpu / first.cpu:7.2f} times"
        )
    gather, standard = medians["NumPy gather, no pipeline"], medians["... augmentation standard"]
    print(f"pixels in memory reach {medians[_IN_MEMORY].wall / gather.wall:.2f} times the rate of NumPy's gather")
    print(
        f"standard reaches {standard.cpu / first.cpu:.2f} times the codelab's rate without augmentation and"
        f" {standard.cpu / medians[_RAND_AUGMENT].cpu:.1f} times that of Keras' RandAugment"
    )


if __name__ == "__main__":
    main()
