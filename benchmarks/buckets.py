"""Reads many objects of a bucket that answers slowly, over several connections, and compares the time with the ideal.

    python -m benchmarks.buckets --objects 2000 --milliseconds 50 --connections 16

The bucket is the server of the tests, in a process of its own.
"""

import argparse
import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from tests.support.cloud_storage.server import CloudStorage
from trainer.files import bucket


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
    with _server(options.objects, options.bytes, options.milliseconds / 1000) as environment:
        os.environ.update(environment)
        # Imports and the first connection are not part of the figure.
        bucket.read("gs://b/0")
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
    paths = (f"gs://b/{number}" for number in range(num_objects))
    begin, cpu = time.monotonic(), _cpu_seconds()
    found = list(bucket.read_many(paths, num_connections=num_connections))
    seconds = time.monotonic() - begin
    if wrong := [item for item in found if isinstance(item, OSError) or len(item) != num_bytes]:
        raise SystemExit(f"{len(wrong)} objects were not read: {wrong[0]!r}")
    return seconds, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def _server(num_objects: int, num_bytes: int, latency_seconds: float) -> Iterator[dict[str, str]]:
    """Run the server, so that it does not share the interpreter's lock; yield the variables for its clients."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, num_objects, num_bytes, latency_seconds))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def _serve(pipe: Connection, num_objects: int, num_bytes: int, latency_seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, CloudStorage(Path(folder)) as server:
        server.buckets.create("b")
        for number in range(num_objects):
            server.buckets.put("b", str(number), bytes(num_bytes))
        server.faults.latency_seconds = latency_seconds
        pipe.send(server.environment)
        pipe.recv()


if __name__ == "__main__":
    sys.exit(main())
