"""Objects on gs:// through google-cloud-storage; its errors become OSError with a message that names the remedy.

Temporary failures (429, 5xx, a lost connection, half an answer) are repeated. Downloads resume where they stopped.
An object that is not found costs a second request, which shows whether its bucket exists.
"""

import contextlib
import dataclasses
import errno
import io
import re
import sys
from collections.abc import Iterator
from typing import IO, Any

from exact_resume.files import bucket_errors, bucket_upload
from exact_resume.files.bucket_client import TIMEOUT_SECONDS, RetryPolicy, client
from exact_resume.files.bucket_errors import errors_of

_ADDRESS = re.compile(r"gs://([^/]+)(?:/(.*))?", re.DOTALL)
_NUM_CONNECTIONS = 16
_NAMES = "items/name,prefixes,nextPageToken"
_IDENTITIES = "items(name,generation,crc32c),nextPageToken"


def read(path: str, *, max_bytes: int = sys.maxsize) -> bytes:
    """Return the content of an object.

    Raises:
        FileNotFoundError: The object does not exist.
        OSError: The object is larger than `max_bytes`, or any other failure, as `bucket_errors` describes it.
    """
    content = _Limited(path, max_bytes)
    download(path, content)
    return content.getvalue()


def read_range(path: str, start: int, num_bytes: int) -> bytes:
    """Return some bytes of an object; fewer at its end.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    with _object(path) as blob:
        last = start + num_bytes - 1
        return bytes(blob.download_as_bytes(start=start, end=last, retry=RetryPolicy(), timeout=TIMEOUT_SECONDS))


def download(path: str, file: IO[bytes]) -> None:
    """Append to a file what an object has beyond the file's position, without asking again for what has arrived.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    from google.api_core.exceptions import RequestRangeNotSatisfiable

    start = file.tell()
    # Without it, an object of no bytes would be a wrong range.
    options: dict[str, Any] = {"start": start} if start else {}
    with _object(path) as blob, contextlib.suppress(RequestRangeNotSatisfiable):
        blob.download_to_file(file, retry=RetryPolicy(file.tell), timeout=TIMEOUT_SECONDS, **options)


def write(path: str, data: bytes) -> None:
    """Write an object; readers see either the old or the new content."""
    write_file(path, io.BytesIO(data))


def upload(local_path: str, path: str) -> None:
    """Copy a local file to an object."""
    with open(local_path, "rb") as file:
        write_file(path, file)


def write_file(path: str, file: IO[bytes]) -> None:
    """Write all bytes of an open file as an object."""
    with _new_object(path) as blob:
        bucket_upload.send(blob, file)


def read_generation(path: str) -> tuple[bytes, int]:
    """Return content and generation of an object.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    from google.api_core.exceptions import PreconditionFailed

    while True:
        generation = int(identity(path)["generation"])
        # If the object was replaced between the two requests, read it again.
        with _object(path) as blob, contextlib.suppress(PreconditionFailed):
            options = {"if_generation_match": generation, "retry": RetryPolicy(), "timeout": TIMEOUT_SECONDS}
            return bytes(blob.download_as_bytes(**options)), generation


def replace(path: str, data: bytes, generation: int) -> int:
    """Write an object if its generation is the given one (0: it does not exist); return the new generation.

    Raises:
        Replaced: The object has another generation.
    """
    from google.api_core.exceptions import PreconditionFailed

    policy = RetryPolicy()
    with _new_object(path) as blob:
        try:
            blob.upload_from_string(
                data, if_generation_match=generation, retry=policy, timeout=TIMEOUT_SECONDS, checksum="crc32c"
            )
            return int(blob.generation)
        except PreconditionFailed:
            pass
    # After a failed request, the first attempt may have written the object all the same.
    with contextlib.suppress(FileNotFoundError):
        content, found = read_generation(path) if policy.num_failures else (None, 0)
        if content == data:
            return found
    raise bucket_errors.Replaced(path)


def remove_generation(path: str, generation: int) -> None:
    """Remove an object if its generation is the given one."""
    from google.api_core.exceptions import NotFound, PreconditionFailed

    with _new_object(path) as blob, contextlib.suppress(NotFound, PreconditionFailed):
        blob.delete(if_generation_match=generation, retry=RetryPolicy(), timeout=TIMEOUT_SECONDS)


def exists(path: str) -> bool:
    """Return whether an object exists; a prefix of other objects' names does not count."""
    try:
        size(path)
    except FileNotFoundError:
        return False
    return True


def size(path: str) -> int:
    """Return the size of an object in bytes.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    with _object(path) as blob:
        blob.reload(retry=RetryPolicy(), timeout=TIMEOUT_SECONDS)
    return int(blob.size)


def identity(path: str) -> dict[str, int | str]:
    """Return generation and checksum of an object, which change when it is replaced.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    with _object(path) as blob:
        blob.reload(retry=RetryPolicy(), timeout=TIMEOUT_SECONDS)
        return _identity(blob)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Version:
    """A version of an object; a later object of the same name has a different version."""

    path: str
    generation: int
    crc32c: str


def versions(directory: str) -> dict[str, Version]:
    """Return relative path -> current version of each object below a folder."""
    return {
        name: Version(
            path=f"{directory.rstrip('/')}/{name}",
            generation=int(identity["generation"]),
            crc32c=str(identity["crc32c"]),
        )
        for name, identity in identities(directory)
    }


def crc32c(local_path: str) -> str:
    """Return the checksum of an object with the content of a local file."""
    with open(local_path, "rb") as file:
        return bucket_upload.crc32c(file)


def copy(source: Version, path: str) -> None:
    """Copy an object on the server.

    Raises:
        Replaced: The object was replaced or removed.
    """
    from google.api_core.exceptions import NotFound, PreconditionFailed

    token = None
    with _new_object(source.path) as old, _new_object(path) as blob:
        try:
            while True:
                token, _, _ = blob.rewrite(
                    old,
                    token=token,
                    if_source_generation_match=source.generation,
                    retry=RetryPolicy(),
                    timeout=TIMEOUT_SECONDS,
                )
                if token is None:
                    return
        except (NotFound, PreconditionFailed):
            raise bucket_errors.Replaced(source.path) from None


def names(directory: str) -> list[str]:
    """Return the sorted names of the entries of a folder, objects and folders alike."""
    prefix = _prefix(directory)
    found: set[str] = set()
    with errors_of(directory):
        for page in _pages(directory, delimiter="/"):
            found.update(blob.name[len(prefix) :] for blob in page)
            found.update(folder[len(prefix) :].rstrip("/") for folder in page.prefixes)
    # The placeholder of an empty folder, which the console makes, has the name of the folder.
    return sorted(found - {""})


def tree(directory: str) -> list[str]:
    """Return the paths of all objects below a folder, relative to it; the paths of placeholders end with a slash."""
    return [name for name, _ in identities(directory)]


def identities(directory: str) -> Iterator[tuple[str, dict[str, int | str]]]:
    """Yield the paths of `tree` in their order, with the `identity` of each object: one request per 1,000 of them."""
    prefix = _prefix(directory)
    with errors_of(directory):
        for page in _pages(directory, fields=_IDENTITIES):
            for blob in page:
                if name := blob.name[len(prefix) :]:
                    yield name, _identity(blob)


def _identity(blob: Any) -> dict[str, int | str]:
    return {"generation": int(blob.generation), "crc32c": str(blob.crc32c)}


def remove(path: str) -> None:
    """Remove an object.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    policy = RetryPolicy()
    try:
        with _object(path) as blob:
            blob.delete(retry=policy, timeout=TIMEOUT_SECONDS)
    except FileNotFoundError:
        # After a failure it may be the first attempt that has removed it.
        if not policy.num_failures:
            raise


def remove_tree(directory: str) -> None:
    """Remove all objects below a folder, except placeholders of folders; it may be empty."""
    # Its futures take 4 ms to import.
    from exact_resume.files.overlap import in_order

    def remove_one(name: str) -> None:
        # Another process may have removed it.
        with contextlib.suppress(FileNotFoundError):
            remove(f"{directory.rstrip('/')}/{name}")

    unwanted = (name for name in tree(directory) if not name.endswith("/"))
    for _ in in_order(remove_one, unwanted, num_threads=_NUM_CONNECTIONS):
        pass


class _Limited(io.BytesIO):
    """Content that refuses to grow beyond a limit."""

    def __init__(self, path: str, max_bytes: int) -> None:
        super().__init__()
        self._path, self._max_bytes = path, max_bytes

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._max_bytes:
            raise OSError(errno.EFBIG, f"more than {self._max_bytes:,} bytes", self._path)
        return super().write(data)


@contextlib.contextmanager
def _new_object(path: str) -> Iterator[Any]:
    """Yield the google.cloud.storage.Blob of an object to be written; failures become OSError."""
    bucket, name = _parts(path)
    if not name:
        raise bucket_errors.invalid(path)
    with errors_of(path):
        yield client().bucket(bucket).blob(name)


@contextlib.contextmanager
def _object(path: str) -> Iterator[Any]:
    """Yield the blob of an existing object; failures become OSError."""
    from google.api_core.exceptions import NotFound

    with _new_object(path) as blob:
        try:
            yield blob
        except NotFound:
            _check_bucket(path)
            raise bucket_errors.missing_object(path) from None


def _check_bucket(path: str) -> None:
    """Fail like a listing if the bucket does not exist; one that may not be listed exists."""
    from google.api_core.exceptions import Forbidden

    with contextlib.suppress(Forbidden):
        next(_pages(f"gs://{_parts(path)[0]}", max_results=1), None)


def _pages(directory: str, **options: Any) -> Iterator[Any]:
    """Yield the pages of a listing."""
    bucket, _ = _parts(directory)
    policy = {"retry": RetryPolicy(), "timeout": TIMEOUT_SECONDS, "fields": _NAMES}
    found = client().list_blobs(bucket, prefix=_prefix(directory), **{**policy, **options})
    return iter(found.pages)


def _prefix(directory: str) -> str:
    """Return the prefix of the names of all objects below a folder."""
    _, name = _parts(directory)
    return f"{name.rstrip('/')}/" if name.rstrip("/") else ""


def _parts(path: str) -> tuple[str, str]:
    """Return the bucket and the name of an object, which may be empty."""
    if not (found := _ADDRESS.fullmatch(path)):
        raise bucket_errors.invalid(path)
    return found[1], found[2] or ""
