"""Files with a secret, which only their owner may know: one that others may have read or written is not used."""

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Unusable(Exception):
    """A file that must not be used; the text is the reason, and the file its subject."""


def read(path: str | Path, *, max_bytes: int) -> str:
    """Return the text of a private file, at most its first bytes.

    Raises:
        FileNotFoundError: There is no such file.
        Unusable: It cannot be read, or others may know or have written it.
    """
    try:
        # A link could lead to a file that others have written.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise Unusable(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with open(descriptor, encoding="ascii", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Unusable("is not a file")
        if found.st_uid != os.geteuid():
            raise Unusable("belongs to another user")
        if found.st_mode & _OTHERS:
            raise Unusable("can be read by other users")
        return file.read(max_bytes)
