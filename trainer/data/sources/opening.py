"""Reads an image by its location, on whichever machine the caller runs: a local path or an object on gs://."""

import os
import stat

from exact_resume.files import bucket
from trainer.data.sources.source import MAX_FILE_BYTES, Identity

_GS = "gs://"
_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")


def read(location: str) -> bytes:
    """Return the content of an image; a local one is read without waiting and within its size.

    Raises:
        OSError: It is missing, too large, not a regular file, belongs to the operating system, or changes.
    """
    if location.startswith(_GS):
        return bucket.read(location, max_bytes=MAX_FILE_BYTES)
    # Checked here, because a link may have changed since the source was listed.
    if is_of_kernel(os.path.realpath(location)):
        raise OSError("a file of the operating system")
    with open(location, "rb", opener=open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(f"{status.st_size:,} bytes are more than {MAX_FILE_BYTES:,}")
        # Files of the kernel have no size and may never end.
        data = file.read(status.st_size + 1)
    if len(data) > status.st_size:
        raise OSError(f"it has more than the {status.st_size:,} bytes that its folder has for it")
    return data


def identity(location: str) -> Identity:
    """Return the identity of an image; on gs://, this is a request.

    Raises:
        OSError: It is missing or cannot be accessed.
    """
    if location.startswith(_GS):
        return bucket.identity(location)
    status = os.stat(location)
    return {
        # With the inode: renaming a folder changes no times of its files, and an archive may give many the same times.
        "inode": status.st_ino,
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
    }


def is_of_kernel(real_path: str) -> bool:
    """Return whether a path without links leads into a folder of the operating system."""
    if (real_path + "/").startswith("/dev/shm/"):  # noqa: S108 - a RAM disk, where users keep data
        return False
    return real_path.startswith(tuple(f"{folder}/" for folder in _KERNEL_FOLDERS)) or real_path in _KERNEL_FOLDERS


def open_at_once(path: str, flags: int) -> int:
    """Open a file for `open` without waiting."""
    # Opening a FIFO would wait for its writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
