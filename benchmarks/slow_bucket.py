"""A bucket that answers slowly: the server of the tests, in a process of its own."""

import contextlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from vertex_testing.cloud_storage.server import CloudStorage

BUCKET = "bench"
Objects = Callable[[], Iterable[tuple[str, bytes]]]
"""Returns names and contents; it is called in the server's process."""


@contextlib.contextmanager
def serving(objects: Objects, *, latency_seconds: float) -> Iterator[None]:
    """Send what this process does on gs:// to a bucket with these objects."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, objects, latency_seconds))
    process.start()
    try:
        os.environ.update(here.recv())
        yield
    finally:
        here.send(None)
        process.join()


def _serve(pipe: Connection, objects: Objects, latency_seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, CloudStorage(Path(folder)) as server:
        server.buckets.create(BUCKET)
        for name, content in objects():
            server.buckets.put(BUCKET, name, content)
        server.faults.latency_seconds = latency_seconds
        pipe.send(server.environment)
        pipe.recv()
