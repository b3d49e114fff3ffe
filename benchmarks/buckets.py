"""Reads many objects of a bucket that answers slowly, over several connections, and compares the time with the ideal.

python -m benchmarks.buckets --objects 2000 --milliseconds 50 --connections 16
"""

import argparse
import functools
import resource
import sys
import time
from collections.abc import Iterator

from benchmarks import slow_bucket
from exact_resume.files import bucket
from exact_resume.files.overlap import in_order


def main() -> int:
    """Print a line per number of connections; return 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=20_000, help="size of each object")
    parser.add_argument("--milliseconds", type=float, default=50, help="time that each answer takes")
    parser.add_argument("--connections", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--limit", type=float, default=1.3, help="times the ideal that are allowed")
    options = parser.parse_args()
    is_slow = False
    objects = functools.partial(_objects, options.objects, options.bytes)
    with slow_bucket.serving(objects, latency_seconds=options.milliseconds / 1000):
        # Imports and the first connection are not part of the figure.
        bucket.read(f"gs://{slow_bucket.BUCKET}/0")
        for num_connections in options.connections:
            ideal = options.objects * options.milliseconds / 1000 / num_connections
            seconds, cpu_seconds = _measure(options.objects, options.bytes, num_connections)
            is_slow |= seconds > options.limit * ideal
            print(
                f"{options.objects} objects over {num_connections} connections: {seconds:.2f} s,"
                f" {seconds / ideal:.2f} times the ideal of {ideal:.2f} s, {cpu_seconds:.2f} s of CPU",
                flush=True,
            )
    return int(is_slow)


def _measure(num_objects: int, num_bytes: int, num_connections: int) -> tuple[float, float]:
    """Return the seconds that all reads take together, and their CPU time."""
    paths = (f"gs://{slow_bucket.BUCKET}/{number}" for number in range(num_objects))
    begin, cpu = time.monotonic(), _cpu_seconds()
    found = list(in_order(bucket.read, paths, num_threads=num_connections))
    seconds = time.monotonic() - begin
    if wrong := [item for item in found if len(item) != num_bytes]:
        raise SystemExit(f"{len(wrong)} objects were not read")
    return seconds, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _objects(num_objects: int, num_bytes: int) -> Iterator[tuple[str, bytes]]:
    return ((str(number), bytes(num_bytes)) for number in range(num_objects))


if __name__ == "__main__":
    sys.exit(main())
