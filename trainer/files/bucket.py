"""Objects on gs:// through TensorFlow's filesystem; its errors become OSError with a message that says what to do.

TensorFlow retries temporary failures (429, 5xx, a lost connection) ten times, up to 32 seconds apart, before it raises.
Some of its functions are avoided (observed with 2.21). `listdir` and `isdir` take a refused or failed request for an
empty folder. `makedirs` never returns if the bucket does not exist. `stat` may be five seconds old, so a file that has
grown would be read in part; files are therefore read to their end.
"""

import contextlib
import errno
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

_PIECE_BYTES = 64 * 2**20
"""Size of one read: TensorFlow's own block."""


def read(path: str, *, max_bytes: int = sys.maxsize) -> bytes:
    """Return the content of an object.

    Raises:
        FileNotFoundError: The object does not exist.
        OSError: The object is larger than `max_bytes`, or any other failure, as `_as_os_error` describes it.
    """
    pieces: list[bytes] = []
    with errors_of(path), _tensorflow().io.gfile.GFile(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            pieces.append(piece)
            if sum(map(len, pieces)) > max_bytes:
                raise OSError(errno.EFBIG, f"more than {max_bytes:,} bytes", path)
    return b"".join(pieces)


def write(path: str, data: bytes) -> None:
    """Write an object; readers see either the old or the new content."""
    with tempfile.NamedTemporaryFile(prefix="upload-") as file:
        file.write(data)
        file.flush()
        upload(file.name, path)


def exists(path: str) -> bool:
    """Return whether an object exists; a prefix of other objects' names does not count."""
    with errors_of(path), _tensorflow().io.gfile.GFile(path, "rb") as file:
        try:
            file.read(1)
        except _tensorflow().errors.NotFoundError as error:
            if _is_about_bucket(str(error)):
                raise
            return False
    return True


def size(path: str) -> int:
    """Return the size of an object in bytes.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    with errors_of(path):
        return int(_tensorflow().io.gfile.stat(path).length)


def names(directory: str, *, depth: int = 1) -> list[str]:
    """Return the paths with `depth` parts below a folder, of objects and folders alike."""
    # Escape the characters that have a meaning in a pattern.
    literal = re.sub(r"([*?\[])", r"[\1]", directory.rstrip("/"))
    with errors_of(directory):
        found = _tensorflow().io.gfile.glob(literal + "/*" * depth)
    return sorted({path.rstrip("/")[len(directory.rstrip("/")) + 1 :] for path in found})


def tree(directory: str) -> list[str]:
    """Return the paths of all objects below a folder, relative to it."""
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
        FileNotFoundError: The object does not exist.
    """
    with errors_of(path):
        _tensorflow().io.gfile.remove(path)


def remove_tree(directory: str) -> None:
    """Remove all objects below a folder; it may be empty."""
    for name in tree(directory):
        # Another process may have removed it; the placeholder of an empty folder has a name with a trailing slash.
        with contextlib.suppress(FileNotFoundError):
            remove(f"{directory.rstrip('/')}/{name}")


def upload(local_path: str, path: str) -> None:
    """Copy a local file to an object."""
    # Not with GFile: after a failed upload its destructor retries for minutes and holds Python's global lock.
    with errors_of(path):
        _tensorflow().io.gfile.copy(local_path, path, overwrite=True)


def _tensorflow() -> Any:
    import tensorflow as tf

    return tf


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn TensorFlow's errors about a path into OSError."""
    try:
        yield
    except _tensorflow().errors.OpError as error:
        raise _as_os_error(str(error), path) from None


def _as_os_error(text: str, path: str) -> OSError:
    """Return TensorFlow's error as the error of a file.

    The text has the status of the last response and Google's message in JSON or XML.
    """
    status = int(found[1]) if (found := re.search(r"HTTP response code (\d+)", text)) else 0
    reported = re.search(r'"message":\s*"([^"]*)"|<Message>([^<]*)</Message>', text)
    message = (reported[1] or reported[2]).rstrip(".") if reported else " ".join(text.split())[:300]
    if _is_about_bucket(text):
        return OSError(errno.ENXIO, f"bucket {path.split('/')[2]!r} does not exist", path)
    if status == 401:
        hint = "run `gcloud auth application-default login`"
        return PermissionError(errno.EACCES, f"no valid credentials for Cloud Storage ({hint})", path)
    if status == 403 and re.search("quota", text, re.IGNORECASE):
        return OSError(errno.EDQUOT, message, path)
    if status == 403:
        return PermissionError(errno.EACCES, f"Cloud Storage refused access ({message})", path)
    if status == 404 or "was not found" in text or "No such file or directory" in text:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if "contain a" in text and "GCS path" in text:
        return OSError(errno.EINVAL, "expected a bucket and a name, gs://BUCKET/NAME", path)
    status_text = f"HTTP {status}: " if status else ""
    return OSError(errno.EIO, f"Cloud Storage failed after several attempts ({status_text}{message})", path)


def _is_about_bucket(text: str) -> bool:
    return "NoSuchBucket" in text or "bucket does not exist" in text
