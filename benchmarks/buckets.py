"""Reads many objects of a bucket that answers slowly, over several connections, and compares the time with the ideal.

python -m benchmarks.buckets --objects 2000 --milliseconds 50 --connections 16
"""

import argparse
import functools
import sys
from collections.abc import Iterator

from benchmarks import slow_bucket
from benchmarks.measuring import parse, took
from exact_resume.files import bucket
from exact_resume.files.overlap import in_order


def main() -> int:
    """Print a line per number of connections; return 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=20_000, help="size of each object")
    parser.add_argument("--milliseconds", type=float, default=50, help="time that each answer takes")
    parser.add_argument("--connections", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--limit", type=float, default=1.3, help="times the ideal that are allowed")
    options = parse(parser, objects=16, milliseconds=5, connections=[4], limit=100)
    is_slow = False
    objects = functools.partial(_objects, options.objects, options.bytes)
    with slow_bucket.serving(objects, latency_seconds=options.milliseconds / 1000):
        # Imports and the first connection are not part of the figure.
        bucket.read(f"gs://{slow_bucket.BUCKET}/0")
        for num_connections in options.connections:
            ideal = options.objects * options.milliseconds / 1000 / num_connections
            cost = took(_read, options.objects, options.bytes, num_connections)
            is_slow |= cost.seconds > options.limit * ideal
            print(
                f"{options.objects} objects over {num_connections} connections: {cost},"
                f" {cost.seconds / ideal:.2f} times the ideal of {ideal:.2f} s",
                flush=True,
            )
    return int(is_slow)


def _read(num_objects: int, num_bytes: int, num_connections: int) -> None:
    """Read all objects.

    Raises:
        SystemExit: Some were not read.
    """
    paths = (f"gs://{slow_bucket.BUCKET}/{number}" for number in range(num_objects))
    found = list(in_order(bucket.read, paths, num_threads=num_connections))
    if wrong := [item for item in found if len(item) != num_bytes]:
        raise SystemExit(f"{len(wrong)} objects were not read")


def _objects(num_objects: int, num_bytes: int) -> Iterator[tuple[str, bytes]]:
    return ((str(number), bytes(num_bytes)) for number in range(num_objects))


if __name__ == "__main__":
    sys.exit(main())
