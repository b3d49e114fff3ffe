"""Local files and folders that are replaced as a whole: readers see the old content or the new one, never a part.

Content is written to a locked temporary file beside its target; an unlocked one was left by a killed process.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_LONGEST_NAME = 200
"""File systems take 255 bytes; the rest is for what makes a temporary name unique."""
_SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
"""Folders in which devices, processes and the kernel appear as files."""
_MEMORY = "/dev/shm"  # noqa: S108 - an ordinary folder in /dev


def write(path: Path, data: bytes) -> None:
    """Write a file; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(
    path: Path, *, beside: Path | None = None, publish: Callable[[Path, Path], None] | None = None
) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of an existing file when the block succeeds, and is on the disk before.

    Args:
        path: The file; a link is replaced, not followed.
        beside: Path beside which the temporary file is made, if not `path`.
        publish: Moves the temporary file to its path; a rename by default.

    Raises:
        OSError: It cannot be written, or is a device, a pipe, a socket or a folder; an old file is unchanged and no
            temporary file is left.
    """
    try:
        _refuse_special(path)
        with _file(beside or path) as (aside, descriptor):
            with open(descriptor, "wb", closefd=False) as file:
                yield file
                file.flush()
                # Without it a power cut may publish an empty file under the final name.
                os.fsync(descriptor)
            (publish or os.replace)(aside, path)
    except OSError as error:
        if error.filename == str(path):
            raise
        # A full disk is found by calls that know no name, and others know the temporary one.
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


@contextmanager
def _file(target: Path) -> Iterator[tuple[Path, int]]:
    """Make a file beside a target and yield its path and descriptor; it is removed if it still exists at the end."""
    while True:
        aside = _name(target)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if _lock(descriptor) and aside.exists():
            break
        os.close(descriptor)
    try:
        yield aside, descriptor
    finally:
        # Before the lock ends, so that no other process finds it first.
        aside.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def folder(target: Path) -> Iterator[Path]:
    """Make a folder beside a target and yield its path; it is removed if it still exists at the end."""
    import shutil

    while True:
        aside = _name(target)
        aside.mkdir()
        with suppress(FileNotFoundError):
            descriptor = os.open(aside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if _lock(descriptor) and aside.exists():
                break
            os.close(descriptor)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(descriptor)


def remove_left(target: Path) -> None:
    """Remove the temporary files and folders of a target whose processes were killed.

    Only what has the name that this module gives, belongs to this user and is not locked. Where the file system has no
    locks, everything stays.
    """
    pattern = re.compile(rf"\.{re.escape(_stem(target))}\.[0-9a-f]{{8}}\.partial")
    with suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if pattern.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_unused(Path(entry.path))


def _remove_unused(aside: Path) -> None:
    """Remove a file or folder.

    Raises:
        OSError: It is in use, or belongs to another user.
    """
    import shutil

    descriptor = os.open(aside, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.geteuid():
            shutil.rmtree(aside) if aside.is_dir() else aside.unlink()
    finally:
        os.close(descriptor)


def _name(target: Path) -> Path:
    # Unique, so that two writers do not write into the same file, and in the same folder, so that a rename replaces the
    # old file in one operation.
    return target.parent / f".{_stem(target)}.{os.urandom(4).hex()}.partial"


def _stem(target: Path) -> str:
    return os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])


def _lock(descriptor: int) -> bool:
    """Lock a new file; return False if another process, which removes leftovers, was faster."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Without locks on this file system, `remove_left` cannot lock it either.
        return error.errno != errno.EWOULDBLOCK
    return True


def _refuse_special(path: Path) -> None:
    """Refuse to replace anything but a regular file or a link in an ordinary folder.

    Raises:
        OSError: The path is a device, a pipe, a socket or a folder, or in a folder of the system.
    """
    kind = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    folder = Path(os.path.realpath(path.parent))
    is_in_system = any(map(folder.is_relative_to, _SYSTEM_FOLDERS)) and not folder.is_relative_to(_MEMORY)
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)) or is_in_system:
        raise OSError(errno.EINVAL, "is not a regular file in an ordinary folder", str(path))
