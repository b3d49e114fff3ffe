"""Images per second and core of `prepare`, compared with TensorFlow Datasets.

    python -m benchmarks.prepare --images 400 --sizes 32 224

The baseline is `ImageFolder(...).as_dataset().map(resize, encode)`, written by ArrayRecordWriter with the same filter
and settings: the figures, checks and lists of `prepare` are extra. Each run is a process of its own on one core; they
take turns, and the figures are medians of images per second of the processor's time, after a first run on few images.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import photographs
from benchmarks.measuring import Took, median, parse, took

_SPLIT = "train"
_QUALITY = 95
"""Quality of JPEGs, as in `prepare`."""


def _prepare(source: Path, output: Path, image_size: int) -> None:
    from trainer.prepare import prepare

    # `_SPLIT` is a class here: one more level of folders would assign all images to a split.
    prepare(
        source=str(source / _SPLIT), output_directory=str(output), report_path=f"{output}.html", image_size=image_size
    )


def _image_folder(source: Path, output: Path, image_size: int) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds
    from array_record.python.array_record_module import ArrayRecordWriter

    from trainer.data import images

    is_png = images.encoding_format(image_size) == "png"

    def prepared(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        # An antialiased triangle filter, as in Pillow.
        resized = tf.image.resize(example["image"], [image_size, image_size], method="bilinear", antialias=True)
        pixels = tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)
        encoded = (
            tf.io.encode_png(pixels, compression=6)
            if is_png
            else tf.io.encode_jpeg(pixels, quality=_QUALITY, chroma_downsampling=False)
        )
        return {"image": encoded, "label": example["label"], "file_name": example["image/filename"]}

    output.mkdir()
    found = tfds.ImageFolder(str(source)).as_dataset(split=_SPLIT)
    features = tfds.features.FeaturesDict(
        {"image": tfds.features.Text(), "label": tfds.features.Scalar(tf.int64), "file_name": tfds.features.Text()}
    )
    writer = ArrayRecordWriter(str(output / "train.array_record"), "group_size:1,uncompressed")
    for example in found.map(prepared, num_parallel_calls=tf.data.AUTOTUNE).as_numpy_iterator():
        writer.write(features.serialize_example(example))
    writer.close()


_WAYS: dict[str, Callable[[Path, Path, int], None]] = {"ImageFolder": _image_folder, "prepare": _prepare}
"""The ways to prepare; the first is the baseline."""


def _run(pipe: Connection, way: str, source: Path, output: Path, image_size: int) -> None:
    """Prepare once in this process and send the figures; on one core, chosen before TensorFlow makes its threads."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    import tensorflow  # noqa: F401
    import tensorflow_datasets  # noqa: F401

    with contextlib.redirect_stderr(io.StringIO()):
        # Imports and tracing in the first call are not measured.
        _WAYS[way](source.parent / "few", output.with_name("few"), image_size)
        pipe.send(took(_WAYS[way], source, output, image_size))


def _measure(way: str, source: Path, image_size: int) -> Took:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=_run, args=(there, way, source, Path(folder) / "out", image_size))
        process.start()
        there.close()
        try:
            found: Took = here.recv()
            return found
        finally:
            process.join()


def main() -> int:
    """Print the medians and their ratios; return 1 if one is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 224], metavar="PIXELS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1.5, help="required ratio to the baseline's rate")
    options = parse(parser, images=20, sizes=[32], repeats=1, limit=0)
    is_slow = False
    with tempfile.TemporaryDirectory() as folder:
        photographs.make(Path(folder) / "few" / _SPLIT, 15)
        photographs.make(Path(folder) / "all" / _SPLIT, options.images)
        for image_size in options.sizes:
            is_slow |= _compare(Path(folder) / "all", image_size, options) < options.limit
    return int(is_slow)


def _compare(source: Path, image_size: int, options: argparse.Namespace) -> float:
    """Print a line per way; return the rate of `prepare`, as a multiple of the baseline's."""
    runs: dict[str, list[Took]] = {way: [] for way in _WAYS}
    for _ in range(options.repeats):
        for way, found in runs.items():
            found.append(_measure(way, source, image_size))
    medians = {way: median(found) for way, found in runs.items()}
    rates = {way: options.images / cost.cpu_seconds for way, cost in medians.items()}
    baseline = next(iter(rates.values()))
    for way, rate in rates.items():
        print(
            f"to {image_size}x{image_size}: {way:<12} {rate:8,.1f} images per second of one core,"
            f" {rate / baseline:.2f} times the baseline's;{medians[way]}",
            flush=True,
        )
    return float(rates["prepare"] / baseline)


if __name__ == "__main__":
    sys.exit(main())
