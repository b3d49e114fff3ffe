"""Copies of files on gs:// on this machine's disk, for programs and libraries that open only local paths."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO

from exact_resume.files import bucket, storage
from exact_resume.files.overlap import in_order

_CHUNK_BYTES = 16 * 2**20
_NUM_CONNECTIONS = 8


def download(path: storage.Path, file: IO[bytes]) -> None:
    """Append the rest of another file, from this file's position; an interrupted copy is continued this way."""
    if storage.is_remote(path):
        bucket.download(os.fspath(path), file)
        return
    with open(path, "rb") as source:
        source.seek(file.tell())
        shutil.copyfileobj(source, file, _CHUNK_BYTES)


@contextlib.contextmanager
def local_copy(path: storage.Path) -> Iterator[str]:
    """Yield a path for libraries that open only local ones: of a copy, if the file or folder is on gs://."""
    if not storage.is_remote(path):
        yield os.fspath(path)
        return
    with tempfile.TemporaryDirectory(prefix="download-") as scratch:
        copy = pathlib.Path(scratch, os.path.basename(os.fspath(path).rstrip("/")))
        # Names are free text, and a placeholder ends with a slash.
        below = [name for name in bucket.tree(os.fspath(path)) if not {"", ".."} & {*name.split("/")}]
        targets = {storage.join(path, name): copy / name for name in below} or {os.fspath(path): copy}
        for _ in in_order(
            lambda source: _download_file(source, targets[source]), targets, num_threads=_NUM_CONNECTIONS
        ):
            pass
        yield str(copy)


def _download_file(source: str, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        download(source, file)
