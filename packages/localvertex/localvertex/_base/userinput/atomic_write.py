"""Small files and folders that are replaced as a whole: readers see the old content or the new one, never a part.

Content is written to a locked temporary file beside its target; an unlocked one was left by a killed process.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_LONGEST_NAME = 200
"""File systems take 255 bytes; the rest is for what makes a temporary name unique."""
_ENDING = r"\.[0-9a-f]{8}\.partial"
_SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
"""Folders in which devices, processes and the kernel appear as files."""
_MEMORY = "/dev/shm"  # noqa: S108 - an ordinary folder in /dev


def write_text(path: str | Path, text: str, *, mode: int = 0o666) -> None:
    """Write a file in UTF-8, replacing it as a whole; `mode` has its permissions, from which the umask is removed.

    Raises:
        OSError: It cannot be written; an old file is unchanged and no temporary file is left.
    """
    write_all({Path(path): text.encode()}, mode=mode)


def write_all(contents: Mapping[Path, bytes | memoryview], *, mode: int = 0o666) -> None:
    """Write several files, none of which is replaced before all are on the disk; a link is replaced, not followed.

    Raises:
        OSError: One cannot be written, or is a device, a pipe, a socket or a folder; no temporary file is left.
    """
    written: dict[Path, Path] = {}
    with ExitStack() as held:
        for path, data in contents.items():
            with _name_errors(path):
                _refuse_special(path)
                aside, descriptor = held.enter_context(_file(path, mode))
                _write(descriptor, data)
                written[path] = aside
        for path, aside in written.items():
            with _name_errors(path):
                os.replace(aside, path)


@contextmanager
def _name_errors(path: Path) -> Iterator[None]:
    """Name the path in errors: a full disk is found by calls that know no name, and others know the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


def _refuse_special(path: Path) -> None:
    """Refuse to replace what is not a regular file or a link in an ordinary folder.

    Raises:
        OSError: The path is a device, a pipe, a socket or a folder, or in a folder of the system.
    """
    kind = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)) or is_in_system(path.parent):
        raise OSError(errno.EINVAL, "is not a regular file in an ordinary folder", str(path))


def is_in_system(folder: Path) -> bool:
    """Return whether a folder is /dev, /proc, /sys or in one of them; /dev/shm is an ordinary one."""
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(each) for each in _SYSTEM_FOLDERS) and not real.is_relative_to(_MEMORY)


def _write(descriptor: int, data: bytes | memoryview) -> None:
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
        file.flush()
        # Without it a power cut may publish an empty file under the final name.
        os.fsync(descriptor)


@contextmanager
def _file(target: Path, mode: int) -> Iterator[tuple[Path, int]]:
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
    with suppress(OSError):
        _remove_matching(target.parent, os.listdir(target.parent), re.escape(f".{_stem(target)}"))


def remove_all_left(tree: Path) -> None:
    """Do as `remove_left` for all targets in a folder and the folders below it."""
    for folder, folders, files in os.walk(tree):
        _remove_matching(Path(folder), [*folders, *files], r"\..+")


def _remove_matching(folder: Path, names: list[str], beginning: str) -> None:
    pattern = re.compile(beginning + _ENDING)
    for name in filter(pattern.fullmatch, names):
        with suppress(OSError):
            _remove_unused(folder / name)


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
