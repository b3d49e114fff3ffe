"""Images per second and core of the trainer's input, beside the pipeline of Google's multi-worker codelab.

Run it as `python benchmarks/input.py`. The pictures are made in the run: JPEGs of 800x600 pixels, the usual size in the
codelab's data set (cassava). The codelab's pipeline decodes each of them, resizes it to 300x300, casts to float32,
shuffles and batches, in every epoch. Ours reads the dataset that `trainer.prepare` made of the same pictures, at the
same size. All have one core and take turns; the figures are medians. Beside the pixels in memory stands NumPy gathering
as many bytes out of 1 GiB: memory speed.
"""

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from trainer.data import dataset as datasets
from trainer.data.batches import training_batches
from trainer.data.examples import Examples, ExamplesInMemory, ExamplesOnDisk
from trainer.data.record_reader import RecordReader
from trainer.data.sampler import Sampler
from trainer.prepare import prepare

SIZE = 300
NUM_CACHED = 4000
"""1 GiB: much more than the processor's own caches hold."""
BATCH_SIZE = 32


def make_pictures(folder: Path, count: int) -> None:
    """Noise whose strength falls with its fineness, as in photographs (amplitude about 1 / frequency)."""
    random = np.random.default_rng(0)
    for number in range(count):
        pixels = np.full((600, 800, 3), 128.0)
        for scale in (2, 4, 8, 16, 32, 64, 128, 256):
            coarse = random.integers(0, 256, (600 // scale + 2, 800 // scale + 2, 3), dtype=np.uint8)
            fine = np.asarray(Image.fromarray(coarse).resize((800, 600), Image.Resampling.BICUBIC))
            pixels += (fine - 128.0) * scale / 256
        place = folder / str(number % 5) / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place, quality=90)


def codelab(folder: Path) -> tf.data.Dataset:
    """The codelab's pipeline on the original files, held in memory so that reading them is free."""
    files = sorted(folder.rglob("*.jpg"))
    encoded = tf.data.Dataset.from_tensor_slices(
        ([file.read_bytes() for file in files], [int(file.parent.name) for file in files])
    )

    def preprocess(data: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [SIZE, SIZE])
        return tf.cast(image, tf.float32) / 255.0, label

    mapped = encoded.repeat().map(preprocess, num_parallel_calls=tf.data.AUTOTUNE)
    return mapped.shuffle(256).batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def ours(examples: Examples) -> tf.data.Dataset:
    """The trainer's batches of a split, which never end."""
    order = Sampler(num_examples=examples.num_examples, global_batch_size=BATCH_SIZE, seed=0)
    return training_batches(examples, order, start_step=0, stop_step=10**9)


def rate(batches: tf.data.Dataset, seconds: float) -> float:
    """Images per second, after the first batches have filled the buffers."""
    iterator = iter(batches)
    for _ in range(12):
        next(iterator)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        next(iterator)
        count += BATCH_SIZE
    return count / (time.perf_counter() - start)


def gather_rate(pixels: np.ndarray, seconds: float) -> float:
    """Images per second of a plain gather from memory to memory."""
    random = np.random.default_rng(0)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        pixels[random.integers(0, len(pixels), BATCH_SIZE)]
        count += BATCH_SIZE
    return count / (time.perf_counter() - start)


def variants(folder: Path) -> dict[str, Callable[[float], float]]:
    """What is measured, by name; each takes the seconds to measure for."""
    with contextlib.redirect_stdout(io.StringIO()):
        prepare(
            source=str(folder / "source"), output_directory=str(folder / "dataset"),
            report_path=str(folder / "report.html"), image_size=SIZE,
        )  # fmt: skip
    data = datasets.load(str(folder / "dataset"))
    pixels = np.random.default_rng(0).integers(0, 256, (NUM_CACHED, SIZE, SIZE, 3), dtype=np.uint8)
    cached = ExamplesInMemory(images=tf.constant(pixels), labels=tf.zeros(NUM_CACHED, tf.int32), image_size=SIZE)
    records = list(data.records("train"))
    encoded = ExamplesInMemory(
        images=tf.constant([record.image_bytes for record in records]),
        labels=tf.constant([record.label for record in records], tf.int32), image_size=SIZE,
    )  # fmt: skip
    on_disk = ExamplesOnDisk(
        RecordReader(data.shard_paths("train"), num_records=len(records), block_size=0),
        num_examples=len(records), image_size=SIZE,
    )  # fmt: skip
    made = {
        "codelab's pipeline": codelab(folder / "source"),
        "prepared, on disk": ours(on_disk),
        "prepared, encoded in memory": ours(encoded),
        "prepared, pixels in memory": ours(cached),
    }
    measured: dict[str, Callable[[float], float]] = {name: partial(rate, batches) for name, batches in made.items()}
    return measured | {"NumPy gather, no pipeline": partial(gather_rate, pixels)}


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    options = parser.parse_args()
    # Before TensorFlow makes its threads, which is at the first operation.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder) / "source", options.pictures)
        measured = variants(Path(folder))
        source_bytes = statistics.mean(path.stat().st_size for path in Path(folder).rglob("*.jpg"))
        shards = list((Path(folder) / "dataset").glob("*.array_record*"))
        stored_bytes = sum(path.stat().st_size for path in shards) / options.pictures
        rates: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(options.repeats):
            for name, measure in measured.items():
                rates[name].append(measure(options.seconds))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    first = next(iter(medians.values()))
    print(f"pictures of {source_bytes / 1e3:.0f} kB, prepared ones of {stored_bytes / 1e3:.0f} kB")
    print(f"{SIZE}x{SIZE}, batches of {BATCH_SIZE}, one core; images per second, median of {options.repeats} turns")
    for name, value in medians.items():
        print(f"{name:<28} {value:9,.0f}   {value / first:6.2f} times the codelab's")
    cache, gather = medians["prepared, pixels in memory"], medians["NumPy gather, no pipeline"]
    print(f"the cache makes {cache / gather:.2f} times what NumPy's gather does")


if __name__ == "__main__":
    main()
