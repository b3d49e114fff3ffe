"""Files, locally and on gs://: the one module that knows the difference. It never imports TensorFlow."""

import contextlib
import errno
import json
import os
import pathlib
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

from exact_resume.files import atomic_write, bucket

Path = str | os.PathLike[str]
T = TypeVar("T")
MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors that show that there is no such file; after any other error, the file may be intact."""
_PASSING = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ENOTCONN, errno.EHOSTDOWN}
"""Errors of a disk or of a network mount that a later attempt may not have."""
_PAUSES_SECONDS = (0.5, 1.0, 2.0)
"""Pauses between the attempts to read."""


def is_object_store(path: Path) -> bool:
    """Return whether the path is in a bucket, as gs://... or mounted as /gcs/..., where folders cannot be renamed.

    The mount (Cloud Storage FUSE) refuses to rename folders with content by default (--rename-dir-limit).
    """
    return is_remote(path) or os.fspath(path).startswith("/gcs/")


def is_remote(path: Path) -> bool:
    """Return whether the path is a URI, gs://..., which Python's own functions cannot open."""
    return "://" in os.fspath(path)


def join(directory: Path, *names: str) -> str:
    """Return the path of something below a folder."""
    return "/".join([os.fspath(directory).rstrip("/"), *names])


@contextlib.contextmanager
def scratch(name: str) -> Iterator[pathlib.Path]:
    """Yield a temporary folder on this machine, after removing those that killed processes left under the same name."""
    import tempfile

    target = pathlib.Path(tempfile.gettempdir(), name)
    atomic_write.remove_left(target)
    with atomic_write.folder(target) as folder:
        folder.chmod(0o700)
        yield folder


def remove_partial(directory: Path) -> None:
    """Remove the partial files of killed writers; call this only while no other process may write there."""
    if is_remote(directory):
        for name in bucket.names(os.fspath(directory)):
            if name.startswith(".") and name.endswith(".partial"):
                with contextlib.suppress(FileNotFoundError):
                    bucket.remove(join(directory, name))
        return
    parent = pathlib.Path(directory)
    if is_object_store(directory) or not parent.is_dir():
        return
    import shutil

    for entry in parent.iterdir():
        if entry.name.startswith(".") and entry.name.endswith(".partial"):
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)


def make_directory(directory: Path) -> None:
    """Make sure that files can be written into a folder.

    In a bucket, which has no folders, an object is written and removed: a missing bucket or permission is found now,
    not when the first checkpoint is due.

    Raises:
        OSError: Files cannot be written there.
    """
    if not is_remote(directory):
        os.makedirs(directory, exist_ok=True)
        return
    probe = join(directory, f".probe-{os.urandom(4).hex()}")
    bucket.write(probe, b"Can be removed.\n")
    bucket.remove(probe)


def exists(path: Path) -> bool:
    """Return whether a file exists; on gs://, a folder does not count as a file."""
    if is_remote(path):
        return bucket.exists(os.fspath(path))
    try:
        _patiently(lambda: os.stat(path))
    except MISSING:
        return False
    return True


def names(directory: Path) -> list[str]:
    """Return the names of the files and folders in a folder, sorted; empty if the folder does not exist."""
    if is_remote(directory):
        return bucket.names(os.fspath(directory))
    try:
        return sorted(_patiently(lambda: os.listdir(directory)))
    except MISSING:
        return []


def size(path: Path) -> int:
    """Return the size of a file in bytes.

    Raises:
        FileNotFoundError: The file does not exist.
    """
    return bucket.size(os.fspath(path)) if is_remote(path) else _patiently(lambda: os.stat(path)).st_size


def remove(path: Path) -> None:
    """Remove a file."""
    bucket.remove(os.fspath(path)) if is_remote(path) else os.unlink(path)


def remove_empty(directory: Path) -> None:
    """Remove a folder unless it contains something; it need not exist, and a bucket has none."""
    if not is_remote(directory):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def remove_tree(directory: Path) -> None:
    """Remove a folder and its content; it need not exist, and another process may be removing it at the same time."""
    if is_remote(directory):
        bucket.remove_tree(os.fspath(directory))
        return
    import shutil

    while os.path.isdir(directory):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; a passing error is retried."""
    return bucket.read(os.fspath(path)) if is_remote(path) else _patiently(lambda: _read_regular(path))


def _read_regular(path: Path) -> bytes:
    # Opening a FIFO would wait for its writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        return file.read()


def read_range(path: Path, start: int, num_bytes: int) -> bytes:
    """Return some bytes of a file; fewer at its end."""
    if is_remote(path):
        return bucket.read_range(os.fspath(path), start, num_bytes)
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(num_bytes)


def _patiently(read: Callable[[], T]) -> T:
    """Return what `read` returns, after several attempts if the disk or the mount has passing errors."""
    for seconds in _PAUSES_SECONDS:
        try:
            return read()
        except OSError as error:
            if error.errno not in _PASSING:
                raise
            time.sleep(seconds)
    return read()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: readers see either the old or the new content."""
    if is_remote(path):
        bucket.write(os.fspath(path), data)
        return
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_object_store(path):
        target.write_bytes(data)
        return
    atomic_write.write(target, data)


def write_file(path: Path, file: BinaryIO) -> None:
    """Write all bytes of an open file as another file, atomically, however many they are."""
    file.seek(0)
    if is_remote(path):
        bucket.write_file(os.fspath(path), file)
        return
    import shutil

    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_object_store(path):
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        return
    with atomic_write.replacing(target) as copy:
        shutil.copyfileobj(file, copy)


def write_text(path: Path, text: str) -> None:
    """Write a text atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write_bytes(path, encode_json(value))


def encode_json(value: Any) -> bytes:
    """Return a value as the content of a JSON file."""
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or None if it does not exist or is not JSON."""
    try:
        return json.loads(read_bytes(path))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
