"""Small files that are replaced as a whole: readers see the old content or the new one, never a part."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localvertex_base.userinput import asides

_SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
_MEMORY = "/dev/shm"  # noqa: S108 - an ordinary folder in /dev
"""Where devices, processes and the kernel appear as files."""


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
            with _named(path):
                _refuse_special(path)
                aside, descriptor = held.enter_context(asides.file(path, mode))
                _write(descriptor, data)
                written[path] = aside
        for path, aside in written.items():
            with _named(path):
                os.replace(aside, path)


@contextmanager
def _named(path: Path) -> Iterator[None]:
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
