"""Replace a file only if it has the version that the caller knows, so that only one of two processes succeeds.

On gs:// the version is the generation, which the service compares. Locally the version is the content and the time of
the last change. It is compared before the rename, which is not atomic; only the creation of a file is.
"""

import contextlib
import dataclasses
import errno
import os
import pathlib

from exact_resume.files import atomic_write, bucket, storage
from exact_resume.files.bucket_errors import Replaced
from exact_resume.files.storage import MISSING

_WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
"""Errors of file systems without hard links."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileVersion:
    """One version of a file."""

    content: bytes | None = None
    """None if there is no file."""
    number: int = 0
    """Generation on gs://, elsewhere the time of the last change in nanoseconds."""


def read(path: str) -> FileVersion:
    """Return the current version of a file; it need not exist."""
    with contextlib.suppress(*MISSING):
        if storage.is_remote(path):
            content, generation = bucket.read_generation(path)
            return FileVersion(content=content, number=generation)
        return FileVersion(content=storage.read_bytes(path), number=os.stat(path).st_mtime_ns)
    return FileVersion()


def replace(path: str, data: bytes, known: FileVersion) -> FileVersion:
    """Write a file if its version is still the known one; return the new version.

    Raises:
        Replaced: The file has another version.
    """
    if storage.is_remote(path):
        return FileVersion(content=data, number=bucket.replace(path, data, known.number))
    if storage.is_object_store(path):
        _check(path, known)
        storage.write_bytes(path, data)
        return read(path)
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)

    def publish(aside: pathlib.Path, target: pathlib.Path) -> None:
        _check(path, known)
        if known.content is None:
            try:
                return os.link(aside, target)
            except OSError as error:
                if error.errno not in _WITHOUT_LINKS:
                    raise
        os.replace(aside, target)

    try:
        with atomic_write.replacing(target, publish=publish) as file:
            file.write(data)
    except (FileExistsError, FileNotFoundError):
        # Another process created the file, or removed this one's partial file.
        raise Replaced(path) from None
    return read(path)


def renew(path: str, data: bytes, known: FileVersion) -> FileVersion:
    """Give a file another version if its version is still the known one; return the new version.

    Locally only the time changes, because a full disk has no room for new content.

    Raises:
        Replaced: The file has another version.
    """
    if storage.is_remote(path):
        return replace(path, data, known)
    if (found := read(path)).content != known.content or found.content is None:
        raise Replaced(path)
    with contextlib.suppress(FileNotFoundError):
        os.utime(path)
    return read(path)


def remove(path: str, known: FileVersion) -> None:
    """Remove a file if its content is the known one; otherwise do nothing."""
    if storage.is_remote(path):
        bucket.remove_generation(path, known.number)
    elif read(path).content == known.content:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _check(path: str, known: FileVersion) -> None:
    if read(path) != known:
        raise Replaced(path)
