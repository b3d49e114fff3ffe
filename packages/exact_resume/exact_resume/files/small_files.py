"""Small local files that are replaced as a whole: readers see the old content or the new one, never a part."""

import errno
import os
import pathlib
import stat

from exact_resume.files import asides

_SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
"""Where devices, processes and the kernel appear as files."""
_MEMORY = "/dev/shm"  # noqa: S108 - an ordinary folder in /dev


def write(path: pathlib.Path, data: bytes) -> None:
    """Write a file, which is on the disk before it replaces the old one; a link is replaced, not followed.

    Raises:
        OSError: It cannot be written, or is a device, a pipe, a socket or a folder; an old file is unchanged and no
            temporary file is left.
    """
    try:
        _refuse_special(path)
        with asides.file(path, 0o666) as (aside, descriptor):
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
                file.flush()
                # Without it a power cut may publish an empty file under the final name.
                os.fsync(descriptor)
            os.replace(aside, path)
    except OSError as error:
        # A full disk is found by calls that know no name, and others know the temporary one.
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


def _refuse_special(path: pathlib.Path) -> None:
    """Refuse to replace what is not a regular file or a link in an ordinary folder.

    Raises:
        OSError: The path is a device, a pipe, a socket or a folder, or in a folder of the system.
    """
    kind = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)) or _is_in_system(path.parent):
        raise OSError(errno.EINVAL, "is not a regular file in an ordinary folder", str(path))


def _is_in_system(folder: pathlib.Path) -> bool:
    real = pathlib.Path(os.path.realpath(folder))
    return any(real.is_relative_to(each) for each in _SYSTEM_FOLDERS) and not real.is_relative_to(_MEMORY)
