"""Time of `prepare` with 1% new images, compared with a full run, on this machine and in a bucket that answers slowly.

    python -m benchmarks.prepare_again --photographs 5000 --tiny 20000 --objects 20000 --milliseconds 50

On this machine it prepares photographs, and tiny images, which show the time per row. In the bucket they are tiny, too,
because only the answers take time there. Each run is `prepare` alone, without imports, after a first one on few images.
The full run in the bucket is also compared with the ideal: one request per image over all connections.
"""

import argparse
import contextlib
import dataclasses
import functools
import io
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import photographs, slow_bucket
from benchmarks.measuring import Clock, Took, parse
from exact_resume.files import bucket
from tests.support import tiny_images
from trainer.prepare import prepare

_NUM_CONNECTIONS = 16
"""Number of connections of `prepare`."""
_NEW_FRACTION = 0.01
_IMAGE_SIZE, _TINY_SIZE = 224, 32


def _objects(num_few: int, num_images: int) -> Iterator[tuple[str, bytes]]:
    for folder, count in (("few", num_few), ("source", num_images)):
        for path, content in tiny_images.images(0, count):
            yield f"{folder}/{path}", content


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Run:
    """One call of `prepare`."""

    cost: Took
    made: dict[str, Any]


def _run(folder: str, output: str, *, source: str = "source", image_size: int = _IMAGE_SIZE) -> _Run:
    """Run `prepare` below a folder."""
    clock = Clock()
    with contextlib.redirect_stderr(io.StringIO()):
        made = prepare(
            source=f"{folder}/{source}",
            output_directory=f"{folder}/{output}",
            report_path=f"{folder}/{output}.html",
            image_size=image_size,
            pipeline_root=f"{folder}/root",
        )
    return _Run(cost=clock.took(), made=made)


def _grow(
    name: str, folder: str, add: Callable[[], None], limit: float, image_size: int = _IMAGE_SIZE
) -> tuple[bool, _Run]:
    """Prepare, add images, and prepare again; return whether that was too slow, and the full run."""
    _run(folder, "first", source="few", image_size=image_size)
    full = _run(folder, "full", image_size=image_size)
    add()
    again = _run(folder, "again", image_size=image_size)
    made = again.made
    print(
        f"{name}: full run {full.cost}, with {made['num_read']:,} new of {made['num_examples']:,} images {again.cost}:"
        f" {again.cost.seconds / full.cost.seconds:.1%} ({again.cost.cpu_seconds / full.cost.cpu_seconds:.1%})",
        flush=True,
    )
    return again.cost.seconds > limit * full.cost.seconds, full


def _upload(num_images: int, end: int) -> None:
    for path, content in tiny_images.images(num_images, end):
        bucket.write(f"gs://{slow_bucket.BUCKET}/source/{path}", content)


def _grown(num_images: int) -> int:
    return num_images + max(1, int(num_images * _NEW_FRACTION))


def _compare_here(options: argparse.Namespace) -> bool:
    """Print the lines of this machine; return whether the run with new images took too long."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        photographs.make(source, options.different)
        shutil.copytree(source, Path(folder) / "few")
        photographs.multiply(source, options.photographs)
        add = functools.partial(photographs.multiply, source, _grown(options.photographs))
        is_slow, _ = _grow("local", folder, add, options.limit)
        return is_slow


def _show_rows(num_few: int, num_images: int) -> None:
    """Print the line of tiny images on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        tiny_images.write(Path(folder) / "few", num_few)
        tiny_images.write(Path(folder) / "source", num_images)
        add = functools.partial(tiny_images.write, Path(folder) / "source", _grown(num_images), begin=num_images)
        _grow("tiny images", folder, add, math.inf, image_size=_TINY_SIZE)


def main() -> int:
    """Print a line per comparison; return 1 if a run with few new images takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=int, default=5000, help="images on this machine")
    parser.add_argument("--tiny", type=int, default=20_000, help="tiny images on this machine")
    parser.add_argument("--objects", type=int, default=20_000, help="images in the bucket")
    parser.add_argument("--milliseconds", type=float, default=50, help="time that each answer of the bucket takes")
    parser.add_argument("--limit", type=float, default=0.05, help="maximum fraction of a full run")
    parser.add_argument("--different", type=int, default=100, help="photographs with different pixels")
    options = parse(parser, photographs=32, different=30, tiny=40, objects=40, milliseconds=1, limit=100)
    is_slow = _compare_here(options)
    _show_rows(options.different, options.tiny)
    objects = functools.partial(_objects, options.different, options.objects)
    with slow_bucket.serving(objects, latency_seconds=options.milliseconds / 1000):
        upload = functools.partial(_upload, options.objects, _grown(options.objects))
        is_slow_there, full = _grow("bucket", f"gs://{slow_bucket.BUCKET}", upload, options.limit)
        ideal = options.objects * options.milliseconds / 1000 / _NUM_CONNECTIONS
        ratio = full.cost.seconds / ideal
        print(f"bucket: {ratio:.2f} times the ideal of {ideal:.2f} s for {_NUM_CONNECTIONS} connections")
    return int(is_slow or is_slow_there)


if __name__ == "__main__":
    sys.exit(main())
