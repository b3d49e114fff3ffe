"""Objects on gs:// through TensorFlow's own filesystem, with errors that are OSError and say what to do.

TensorFlow repeats what fails for the moment (429, 5xx, a cut connection) ten times, up to 32 seconds apart, before an
error gets here. Some of its functions are not used (observed with 2.21): `listdir` and `isdir` take a refused or a
failed request for an empty place, `makedirs` never returns where the bucket does not exist, and what `stat` knows
may be five seconds old, so that a file that has grown is read in part: here files are read to their end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

_PIECE_BYTES = 64 * 2**20
"""How much is asked for at a time: TensorFlow's own block."""


def read(path: str) -> bytes:
    """The content of an object.

    Raises:
        FileNotFoundError: there is no such object.
        OSError: as `_as_os_error` tells.
    """
    pieces = []
    with errors_of(path), _tensorflow().io.gfile.GFile(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            pieces.append(piece)
    return b"".join(pieces)


def write(path: str, data: bytes) -> None:
    """Write an object: readers see the old content or the new one, never a part."""
    with tempfile.NamedTemporaryFile(prefix="upload-") as file:
        file.write(data)
        file.flush()
        upload(file.name, path)


def exists(path: str) -> bool:
    """Whether there is such an object; a name that only others begin with is none."""
    with errors_of(path), _tensorflow().io.gfile.GFile(path, "rb") as file:
        try:
            file.read(1)
        except _tensorflow().errors.NotFoundError as error:
            if _is_about_the_bucket(str(error)):
                raise
            return False
    return True


def names(directory: str, *, depth: int = 1) -> list[str]:
    """Paths below a folder that have `depth` parts, of objects and of folders (nothing else tells them apart)."""
    # These mean something in a pattern.
    literal = re.sub(r"([*?\[])", r"[\1]", directory.rstrip("/"))
    with errors_of(directory):
        found = _tensorflow().io.gfile.glob(literal + "/*" * depth)
    return sorted({path.rstrip("/")[len(directory.rstrip("/")) + 1 :] for path in found})


def tree(directory: str) -> list[str]:
    """Paths of all objects below a folder, relative to it."""
    found: list[str] = []
    depth = 1
    while level := names(directory, depth=depth):
        folders = {path.rpartition("/")[0] for path in level}
        found = [path for path in found if path not in folders] + level
        depth += 1
    return sorted(found)


def remove(path: str) -> None:
    """Remove an object.

    Raises:
        FileNotFoundError: there is no such object.
    """
    with errors_of(path):
        _tensorflow().io.gfile.remove(path)


def remove_tree(directory: str) -> None:
    """Remove all objects below a folder; none is fine."""
    for name in tree(directory):
        # Another process may have been faster; an empty folder's placeholder has a slash at its end.
        with contextlib.suppress(FileNotFoundError):
            remove(f"{directory.rstrip('/')}/{name}")


def upload(local_path: str, path: str) -> None:
    """Copy a local file to an object."""
    # Not with GFile: one whose upload failed tries again when it is collected, for minutes and with Python's lock held.
    with errors_of(path):
        _tensorflow().io.gfile.copy(local_path, path, overwrite=True)


def _tensorflow() -> Any:
    import tensorflow as tf

    return tf


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn TensorFlow's errors of a path into OSError."""
    try:
        yield
    except _tensorflow().errors.OpError as error:
        raise _as_os_error(str(error), path) from None


def _as_os_error(text: str, path: str) -> OSError:
    """What TensorFlow says, as the error of a file.

    Its text holds the status of the last answer and, from Google, a message in JSON or XML.
    """
    status = int(found[1]) if (found := re.search(r"HTTP response code (\d+)", text)) else 0
    said = re.search(r'"message":\s*"([^"]*)"|<Message>([^<]*)</Message>', text)
    message = (said[1] or said[2]).rstrip(".") if said else " ".join(text.split())[:300]
    if _is_about_the_bucket(text):
        return OSError(errno.ENXIO, f"there is no bucket {path.split('/')[2]!r}", path)
    if status == 401:
        hint = "`gcloud auth application-default login` gives you some here"
        return PermissionError(errno.EACCES, f"no credentials that Cloud Storage takes ({hint})", path)
    if status == 403 and re.search("quota", text, re.IGNORECASE):
        return OSError(errno.EDQUOT, message, path)
    if status == 403:
        return PermissionError(errno.EACCES, f"Cloud Storage refuses it ({message})", path)
    if status == 404 or "was not found" in text or "No such file or directory" in text:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if "contain a" in text and "GCS path" in text:
        return OSError(errno.EINVAL, "a bucket and a name are expected, gs://BUCKET/NAME", path)
    answer = f"HTTP {status}: " if status else ""
    return OSError(errno.EIO, f"Cloud Storage did not do it after several attempts ({answer}{message})", path)


def _is_about_the_bucket(text: str) -> bool:
    return "NoSuchBucket" in text or "bucket does not exist" in text
