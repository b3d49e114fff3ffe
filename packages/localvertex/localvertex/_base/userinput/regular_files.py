"""Files in folders that another program can change while they are read; one with a secret is its owner's alone."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Unusable(Exception):
    """A file that must not be used; the text is the reason, and the file its subject."""


def open_regular(path: str | Path) -> BinaryIO:
    """Open a file to read: a pipe in its place would wait for a writer, and a link could lead to any other file.

    Raises:
        OSError: It cannot be read, or it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_private(path: str | Path, *, max_bytes: int) -> str:
    """Return the text of a file with a secret, at most its first bytes; one that others may know or write is not used.

    Raises:
        FileNotFoundError: There is no such file.
        Unusable: It cannot be read, or others may know or have written it.
    """
    try:
        opened = open_regular(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise Unusable(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with opened as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid():
            raise Unusable("belongs to another user")
        if found.st_mode & _OTHERS:
            raise Unusable("can be read by other users")
        return file.read(max_bytes).decode("ascii", "replace")
