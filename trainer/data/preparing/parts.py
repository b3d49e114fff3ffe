"""Parts: the finished work on some images of a source, in a folder where a later attempt or another machine finds it.

A part is a pair of files. NAME.bytes has the prepared images one after the other. NAME.rows has a line with the
checksums of its other lines and of NAME.bytes, then a row per image. A part exists if both files are there.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, BinaryIO

from exact_resume.files import atomic_write, downloads, storage
from exact_resume.files.overlap import in_order
from trainer.data.preparing.read import examine_images
from trainer.data.preparing.rows import Row, from_values, to_values
from trainer.data.sources.source import SourceImage

MAX_IMAGES = 2048
"""Images in one part: seconds to minutes of work, and few enough files with millions of images."""
_ROWS, _BYTES = ".rows", ".bytes"
_FILE = re.compile(r"[0-9a-f]{64}\.(?:rows|bytes)")
_ASIDE = re.compile(rf"\.({_FILE.pattern})\.[0-9a-f]{{8}}\.partial")
_NUM_THREADS = 16


class DamagedPart(Exception):
    """A part is incomplete, or was changed; it is not used."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A finished part."""

    name: str
    """SHA-256 of the names and identities of its images, and of the image size."""
    num_rows: int
    """Number of images, used or rejected."""
    num_bytes: int
    """Size of all prepared images."""
    sha256: str
    """Digest of the prepared images."""
    began_ns: int
    """Time before the first image was read, in nanoseconds."""


def make(images: Sequence[SourceImage], image_size: int, folder: str) -> Part:
    """Read and examine some images and commit them as a part.

    Any worker may call it, even several for the same images: all write the same bytes.

    Args:
        images: At most MAX_IMAGES.
        image_size: Height and width of the prepared images in pixels.
        folder: Local or gs://.

    Raises:
        OSError: The folder cannot be written. An image that cannot be read is a row with the reason.
    """
    began_ns = time.time_ns()
    with tempfile.TemporaryFile(prefix="part-") as prepared:
        rows = [row for some in examine_images(images, image_size, prepared) for row in some]
        return commit(rows, prepared, image_size=image_size, folder=folder, began_ns=began_ns)


def make_all(
    images: Iterable[SourceImage], image_size: int, prepared: BinaryIO, folder: str
) -> Iterator[Sequence[Row]]:
    """Yield the rows of all images, part by part; each part is committed before its rows are yielded.

    Args:
        images: Not read yet.
        image_size: Height and width of the prepared images in pixels.
        prepared: A file that grows by the prepared images.
        folder: For the parts, local or gs://.
    """
    remaining = iter(images)
    while True:
        began_ns, start = time.time_ns(), prepared.seek(0, os.SEEK_END)
        with tempfile.TemporaryFile(prefix="part-") as own:
            some = examine_images(itertools.islice(remaining, MAX_IMAGES), image_size, own)
            if not (rows := list(itertools.chain.from_iterable(some))):
                return
            # Without an identity, the next attempt could not find out whether an image is the same.
            if any(row.identity for row in rows):
                commit(rows, own, image_size=image_size, folder=folder, began_ns=began_ns)
            own.seek(0)
            shutil.copyfileobj(own, prepared)
        yield [dataclasses.replace(row, offset=row.offset + start) for row in rows]


def commit(rows: Sequence[Row], prepared: BinaryIO, *, image_size: int, folder: str, began_ns: int) -> Part:
    """Write the rows and bytes of some images as a part.

    Args:
        rows: Of all images, with offsets into `prepared`.
        prepared: A file with the prepared images.
        image_size: Height and width of the prepared images in pixels.
        folder: Local or gs://.
        began_ns: Time before the first image was read, in nanoseconds.
    """
    identities = [[row.name, sorted(row.identity.items())] for row in rows]
    part = Part(
        name=hashlib.sha256(json.dumps([image_size, identities]).encode()).hexdigest(),
        num_rows=len(rows),
        num_bytes=prepared.seek(0, os.SEEK_END),
        sha256=_sha256(prepared),
        began_ns=began_ns,
    )
    body = "".join(json.dumps(to_values(row)) + "\n" for row in rows).encode()
    header = dataclasses.asdict(part) | {"rows_sha256": hashlib.sha256(body).hexdigest()}
    storage.write_file(_path(folder, part.name, _BYTES), prepared)
    storage.write_bytes(_path(folder, part.name, _ROWS), json.dumps(header).encode() + b"\n" + body)
    return part


def names(folder: str) -> list[str]:
    """Return the names of the parts in a folder, in a fixed order."""
    return [name.removesuffix(_ROWS) for name in _files(folder) if name.endswith(_ROWS)]


def load(folder: str, name: str) -> tuple[Part, list[Row]]:
    """Return a part and its rows, whose offsets are positions in its bytes.

    Raises:
        DamagedPart: Its rows are incomplete or were changed.
    """
    path = _path(folder, name, _ROWS)
    try:
        first, _, body = storage.read_bytes(path).partition(b"\n")
        header = json.loads(first)
        rows_sha256 = header.pop("rows_sha256")
        part = Part(**header)
    except storage.MISSING:
        raise DamagedPart(f"{path} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedPart(f"{path} is not a part") from None
    if part.name != name or hashlib.sha256(body).hexdigest() != rows_sha256:
        raise DamagedPart(f"{path} is incomplete or was changed")
    return part, [from_values(json.loads(line)) for line in body.splitlines()]


@contextlib.contextmanager
def open_bytes(folder: str, part: Part) -> Iterator[IO[bytes]]:
    """Open the prepared images of a part on this machine, after a check of their checksum.

    Raises:
        DamagedPart: They are incomplete or were changed.
    """
    path = _path(folder, part.name, _BYTES)
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(stack.enter_context(downloads.local_copy(path)), "rb"))
        except storage.MISSING:
            raise DamagedPart(f"{path} is missing") from None
        if _sha256(file) != part.sha256:
            raise DamagedPart(f"{path} has other bytes than {part.name}{_ROWS} names")
        file.seek(0)
        yield file


def path_of_bytes(folder: str, name: str) -> str:
    """Return the path of the prepared images of a part."""
    return _path(folder, name, _BYTES)


def remove(folder: str) -> None:
    """Remove all parts of a folder, and leftovers of killed processes; nothing else."""
    if not storage.is_object_store(folder):
        for left in filter(None, map(_ASIDE.fullmatch, storage.names(folder))):
            atomic_write.remove_left(pathlib.Path(folder, left[1]))

    def remove_one(name: str) -> None:
        # Another attempt may be removing them as well.
        with contextlib.suppress(*storage.MISSING):
            storage.remove(storage.join(folder, name))

    list(in_order(remove_one, _files(folder), num_threads=_NUM_THREADS))
    storage.remove_empty(folder)


def _files(folder: str) -> list[str]:
    return [name for name in storage.names(folder) if _FILE.fullmatch(name)]


def _path(folder: str, name: str, ending: str) -> str:
    return storage.join(folder, name + ending)


def _sha256(file: Any) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
