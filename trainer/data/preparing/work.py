"""The work items of `prepare` for workers on several machines: images to read and examine, and shards to write.

Only rows go through this machine. Workers leave the prepared images in parts, and other workers read them from there.
"""

import bisect
import dataclasses
import functools
import hashlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from trainer.data.preparing import parts, shards
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.parts import DamagedPart, Part
from trainer.data.preparing.rows import Row
from trainer.data.preparing.shards import Shard
from trainer.data.sources.source import SourceImage
from trainer.data.stored.metadata import StoredShard
from trainer.files import downloads, storage
from trainer.files.overlap import in_order

_NUM_CONNECTIONS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Located:
    """A row, and where its prepared image is."""

    row: Row
    path: str
    offset: int

    def read(self) -> tuple[Row, bytes]:
        """Return the row with its image.

        Raises:
            DamagedPart: It is another image.
        """
        image = storage.read_range(self.path, self.offset, self.row.num_stored_bytes)
        if hashlib.sha256(image).hexdigest() != self.row.stored_hash:
            raise DamagedPart(f"{self.path} was changed")
        return self.row, image


class PartsFile:
    """The prepared images of parts, as one after the other in a file, without a copy of them."""

    def __init__(self, folder: str) -> None:
        """Begin without parts.

        Args:
            folder: Of the parts, local or gs://; all workers can read and write it.
        """
        self.folder = folder
        self._names: list[str] = []
        self._starts: list[int] = []
        self._end = 0

    def append(self, part: Part) -> list[Row]:
        """Add a part and return its rows, with offsets into all parts.

        Raises:
            DamagedPart: The rows are incomplete or were changed.
        """
        start = self._end
        self._names.append(part.name)
        self._starts.append(start)
        self._end += part.num_bytes
        return [dataclasses.replace(row, offset=start + row.offset) for row in parts.read(self.folder, part.name)]

    def images(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
        """Yield each row with its prepared image."""
        return in_order(_Located.read, self.locate(rows), num_threads=_NUM_CONNECTIONS)

    def locate(self, rows: Iterable[Row]) -> Iterator[_Located]:
        """Yield for each row what a worker on any machine reads its image by."""
        for row in rows:
            # An empty part starts where the next one does; of equal starts, the last has the image.
            index = bisect.bisect_right(self._starts, row.offset) - 1
            path = parts.path_of_bytes(self.folder, self._names[index])
            yield _Located(row=row, path=path, offset=row.offset - self._starts[index])


def examined(
    images: Iterable[SourceImage], image_size: int, prepared: PartsFile, engine: Engine
) -> Iterator[list[Row]]:
    """Yield a row for each image, part by part, read and examined by the workers of an engine.

    Args:
        images: Each with a location that the workers can open.
        image_size: Height and width of the prepared images in pixels.
        prepared: Grows by the parts.
        engine: Does the work.
    """
    remaining = iter(images)
    items = iter(lambda: list(itertools.islice(remaining, parts.MAX_IMAGES)), [])
    for part in engine.map(functools.partial(_make, image_size, prepared.folder), items):
        yield prepared.append(part)


def write_shards(
    directory: str, prepared: PartsFile, engine: Engine, planned: Iterable[tuple[Shard, Iterable[Row]]]
) -> Iterator[StoredShard]:
    """Have shards written by the workers of an engine, and yield what they contain.

    Args:
        directory: For the shards, on this machine; the workers write them beside the parts.
        prepared: Has the images of all rows.
        engine: Does the work.
        planned: Shards, each with its rows in their order.
    """
    items = ((shard, list(prepared.locate(rows))) for shard, rows in planned)
    for shard in engine.map(functools.partial(_write, prepared.folder), items):
        path, target = storage.join(prepared.folder, shard.name), os.path.join(directory, shard.name)
        if storage.is_remote(path):
            with open(target, "wb") as file:
                downloads.download(path, file)
        else:
            shutil.move(path, target)
        yield shard


def _make(image_size: int, folder: str, images: Sequence[SourceImage]) -> Part:
    return parts.make(images, image_size, folder)


def _write(folder: str, item: tuple[Shard, Sequence[_Located]]) -> StoredShard:
    shard, located = item
    # Not in the folder, because another worker may write the same shard at the same time.
    with tempfile.TemporaryDirectory(prefix="shard-") as scratch:
        written = shards.write(scratch, shard, in_order(_Located.read, located, num_threads=_NUM_CONNECTIONS))
        with open(os.path.join(scratch, shard.name), "rb") as file:
            storage.write_file(storage.join(folder, shard.name), file)
    return written
