"""Temporary folders of steps and replicas, and the removal of those that a killed process left."""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "localvertex-held-"
"""Folders with this name are locked as long as they are in use."""

_MIN_AGE_SECONDS = 60.0
"""A younger folder may not be locked yet, or belong to a step that is being stopped."""


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Make a folder below TMPDIR and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_parent(), ignore_cleanup_errors=True) as name:
        lock = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Without locks on this file system, `remove_left` cannot lock the folder either.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield name
        finally:
            os.close(lock)


def parent() -> str:
    """Return the folder of this user with all temporary folders, whether it exists or not."""
    root = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - on a full disk, `tempfile` finds no usable folder
    with suppress(FileNotFoundError):
        root = tempfile.gettempdir()
    return os.path.join(root, f"localvertex-{os.geteuid()}")


def _parent() -> str:
    """Return the folder for a new one: TMPDIR itself if another user has taken the name."""
    with suppress(FileExistsError):
        os.mkdir(parent(), 0o700)
    status = os.lstat(parent())
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return parent() if is_own else tempfile.gettempdir()


def remove_left(own_files: Collection[str] = ()) -> None:
    """Remove the empty folders of processes that were killed; a folder with files stays, because they may be a user's.

    Args:
        own_files: A folder with exactly these files, which localvertex writes, is removed as well.
    """
    before = time.time() - _MIN_AGE_SECONDS
    for folder in (each for above in (tempfile.gettempdir(), parent()) for each in Path(above).glob(f"{_PREFIX}*")):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.geteuid() and status.st_mtime < before:
                _remove_unused(folder, own_files)


def _remove_unused(folder: Path, own_files: Collection[str]) -> None:
    """Remove a folder.

    Raises:
        OSError: It is in use, or contains something else.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = [each for each in folder.iterdir() if each.is_file() and not each.is_symlink()]
        if sorted(each.name for each in found) == sorted(own_files):
            for each in found:
                each.unlink()
        folder.rmdir()
    finally:
        os.close(lock)
