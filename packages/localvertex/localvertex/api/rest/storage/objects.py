"""The files in the folders of the buckets, as objects of Cloud Storage."""

import base64
import hashlib
import mimetypes
import os
import re
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import google_crc32c

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found, refusing
from localvertex.errors import TaskFailed
from localvertex.store import record
from localvertex.values.buckets import PROJECT_NUMBER, Buckets

_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.partial")
"""Names of uploads that are being moved, which are not objects yet."""

LEFT = ".left"
"""Ending of the name of a file beside an upload that names what a killed server would leave in a bucket."""

_CHUNK_BYTES = 1 << 20

_DEFAULT_TYPE = "application/octet-stream"

_PAGE = 1000


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of all buckets."""

    root: Path
    """The folder that has one folder per bucket."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held between a check of a generation and the change, and while folders are made or removed."""

    def path(self, bucket: str, name: str) -> Path:
        """Return the file of an object, which need not exist.

        Raises:
            ApiError: No file in the bucket's folder can have this name.
        """
        parts = name.split("/")
        with refusing(Status.INVALID_ARGUMENT, TaskFailed):
            path = Path(Buckets(root=self.root).path_of(f"gs://{bucket}/{name}"))
        if not name or {"", ".", ".."} & {*parts} or _PARTIAL.fullmatch(path.name):
            raise invalid(f"gs://{bucket}/{name[:200]!a}: no file of a folder can have this name; choose another")
        return path

    def find(self, bucket: str, name: str, query: Mapping[str, str]) -> Path:
        """Return the file of an object that exists.

        Raises:
            ApiError: It does not exist, or not in the generation that the request asks for.
        """
        path = self.path(bucket, name)
        if not path.is_file():
            raise not_found(f"gs://{bucket}/{name[:500]}")
        self.check_generation(path, query)
        return path

    def check_generation(self, path: Path, query: Mapping[str, str]) -> None:
        """Refuse a request whose precondition does not hold.

        Raises:
            ApiError: The object has another generation.
        """
        wanted = query.get("ifGenerationMatch", query.get("generation"))
        current = generation(path) if path.is_file() else "0"
        if wanted is not None and wanted != current:
            raise PreconditionFailed(f"the object has generation {current}, not {wanted[:40]}")

    def put(self, source: Path, bucket: str, name: str, query: Mapping[str, str]) -> Path:
        """Move a complete upload to its place, where readers see the old content or the new one.

        Raises:
            ApiError: There cannot be such a file, or a precondition does not hold.
            OSError: It cannot be written.
        """
        path = self.path(bucket, name)
        self.check_generation(path, query)
        aside = path.parent / f".{os.urandom(8).hex()}.partial"
        left = source.with_suffix(LEFT)
        try:
            left.write_text(str(aside))
            try:
                with self.lock:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if path.is_dir():
                        raise IsADirectoryError
                    aside.touch()
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                text = f"gs://{bucket}/{name[:200]}: a file and a folder cannot have the same name; choose another"
                raise invalid(text) from None
            # The folder of the buckets may be on another disk, from which a rename is not possible.
            shutil.move(source, aside)
            with self.lock:
                self.check_generation(path, query)
                os.replace(aside, path)
        finally:
            with suppress(OSError):
                aside.unlink()
            left.unlink(missing_ok=True)
        return path

    def remove_left(self, private: Path) -> None:
        """Remove what a killed server left in buckets.

        Args:
            private: The folder of the uploads that were not complete.
        """
        for each in private.glob(f"*{LEFT}"):
            with suppress(OSError, ValueError):
                aside = Path(each.read_text())
                if _PARTIAL.fullmatch(aside.name) and aside.resolve().is_relative_to(self.root.resolve()):
                    aside.unlink()

    def delete(self, bucket: str, name: str, query: Mapping[str, str]) -> None:
        """Delete an object, and its folders that are empty then."""
        with self.lock:
            path = self.find(bucket, name, query)
            path.unlink()
            with suppress(OSError):  # one that has files, or that a step removes
                for folder in path.parents:
                    if folder.parent == self.root:
                        break
                    folder.rmdir()

    def buckets(self) -> list[str]:
        """Return the names of the buckets."""
        found = sorted(each.name for each in self.root.iterdir()) if self.root.is_dir() else []
        return [each for each in found if (self.root / each).is_dir() and not (self.root / each).is_symlink()]

    def make_bucket(self, bucket: str) -> JsonObject:
        """Create the folder of a bucket.

        Raises:
            ApiError: It exists, or no bucket can have this name.
            OSError: It cannot be created.
        """
        if "/" in bucket:
            raise invalid(f"{bucket[:80]!r} is not the name of a bucket; it contains no '/'")
        with self.lock:
            try:
                self.path(bucket, "x").parent.mkdir(parents=True)
            except FileExistsError:
                raise ApiError(Status.ALREADY_EXISTS, f"the bucket gs://{bucket} already exists") from None
        return self.bucket(bucket)

    def check_bucket(self, bucket: str) -> Path:
        """Return the folder of a bucket.

        Raises:
            ApiError: There is no such bucket.
        """
        folder = self.path(bucket, "x").parent
        if not folder.is_dir():
            text = "the folder of a bucket is made by a call that creates it, or for a job that names it"
            advice = f"mkdir -p {shlex.quote(str(folder))}"
            raise ApiError(Status.NOT_FOUND, f"the bucket gs://{bucket} is not found; {text}; to make it: {advice}")
        return folder

    def bucket(self, bucket: str) -> JsonObject:
        """Build the Bucket resource.

        Raises:
            ApiError: There is no such bucket.
        """
        folder = self.check_bucket(bucket)
        changed = record.timestamp(folder.stat().st_mtime)
        return {
            "kind": "storage#bucket",
            "id": bucket,
            "name": bucket,
            "projectNumber": PROJECT_NUMBER,
            "location": "US-CENTRAL1",
            "storageClass": "STANDARD",
            "metageneration": "1",
            "timeCreated": changed,
            "updated": changed,
        }

    def remove_bucket(self, bucket: str) -> None:
        """Remove the folder of a bucket without objects; empty folders in it do not count as objects.

        Raises:
            ApiError: There is no such bucket, or it has objects.
        """
        self.bucket(bucket)
        try:
            with self.lock:
                folders = [*os.walk(self.path(bucket, "x").parent, topdown=False)]
                # A refused deletion keeps even the empty folders.
                if any(files for *_, files in folders):
                    raise OSError
                for folder, *_ in folders:
                    os.rmdir(folder)
        except OSError:
            raise ApiError(Status.ABORTED, f"the bucket gs://{bucket} is not empty; delete its objects first") from None

    def page(self, bucket: str, query: Mapping[str, str]) -> JsonObject:
        """List objects by name; with a delimiter, what has it after the prefix is listed as a folder."""
        folder = self.path(bucket, "x").parent
        prefix, delimiter, start = (query.get(key, "") for key in ("prefix", "delimiter", "pageToken"))
        size = query.get("maxResults", "")
        limit = int(size) if re.fullmatch("[1-9][0-9]{0,2}", size) else _PAGE
        items: list[str] = []
        prefixes: set[str] = set()
        last = ""
        names = sorted(name for name in _names(folder) if name.startswith(prefix) and name > start)
        for name in names:
            head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            group = f"{prefix}{head}{delimiter}"
            if found and group in prefixes:
                last = name
                continue
            if len(items) + len(prefixes) == limit:
                break
            last = name
            if found:
                prefixes.add(group)
            else:
                items.append(name)
        more = {"nextPageToken": last} if names and last != names[-1] else {}
        found_items = []
        for name in items:
            with suppress(FileNotFoundError):  # a step removes files at any time
                found_items.append(self.resource(bucket, name, folder / name))
        return {"kind": "storage#objects", "items": found_items, "prefixes": sorted(prefixes)} | more

    def resource(self, bucket: str, name: str, path: Path) -> JsonObject:
        """Build the Object resource."""
        status = path.stat()
        md5, crc32c = _hashes(path, status.st_ino, status.st_size, status.st_mtime_ns)
        changed = record.timestamp(status.st_mtime)
        return {
            "kind": "storage#object",
            "id": f"{bucket}/{name}/{generation(path)}",
            "selfLink": f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}",
            "name": name,
            "bucket": bucket,
            "generation": generation(path),
            "metageneration": "1",
            "contentType": mimetypes.guess_type(name)[0] or _DEFAULT_TYPE,
            "size": str(status.st_size),
            "md5Hash": md5,
            "crc32c": crc32c,
            "etag": generation(path),
            "timeCreated": changed,
            "updated": changed,
            "storageClass": "STANDARD",
        }


class PreconditionFailed(ApiError):
    """The precondition of a request does not hold; Cloud Storage has an HTTP code of its own for it."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.FAILED_PRECONDITION, message)


def generation(path: Path) -> str:
    """Return a number that changes with the content of an object."""
    return str(path.stat().st_mtime_ns // 1000)


@lru_cache(maxsize=10_000)
def _hashes(path: Path, inode: int, size: int, changed_ns: int) -> tuple[str, str]:
    """Return MD5 and CRC-32C of a file in base64; clients that read a large one in parts ask for them each time."""
    md5 = hashlib.md5(usedforsecurity=False)
    crc32c = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            md5.update(chunk)
            crc32c.update(chunk)  # type: ignore[no-untyped-call]
    crc = crc32c.digest()  # type: ignore[no-untyped-call]
    return base64.b64encode(md5.digest()).decode(), base64.b64encode(crc).decode()


def _names(folder: Path) -> Iterator[str]:
    """Yield the names of the objects of a bucket; one that is not UTF-8 cannot be the name of an object."""
    for parent, _, files in os.walk(folder):
        for name in files:
            path = Path(parent, name)
            text = path.relative_to(folder).as_posix()
            if path.is_file() and not path.is_symlink() and not _PARTIAL.fullmatch(name) and _is_utf8(text):
                yield text


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
