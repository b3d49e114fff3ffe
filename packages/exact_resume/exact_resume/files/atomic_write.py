"""Temporary neighbours of what is being written, locked while in use, so that those of killed processes are found."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST_NAME = 200
"""File systems take 255 bytes; the rest is for what makes a temporary name unique."""


@contextmanager
def file(target: Path, mode: int) -> Iterator[tuple[Path, int]]:
    """Make a file beside a target and yield its path and descriptor; it is removed if it still exists at the end."""
    while True:
        aside = _name(target)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
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
    """Lock a new file; return False if another process, which removes what is left, was faster."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Without locks on this file system, `remove_left` cannot lock it either.
        return error.errno != errno.EWOULDBLOCK
    return True
