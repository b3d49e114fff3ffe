"""The engine that uses workers of Apache Beam.

Only rows are transferred to this machine. Workers write the prepared images into parts, and then shards from ranges of
these parts.
"""

import bisect
import dataclasses
import functools
import hashlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from exact_resume.files import bucket, downloads, storage
from exact_resume.files.overlap import batched, in_order
from localvertex._base.userinput.errors import UserError
from trainer.data.preparing import parts, shards
from trainer.data.preparing.engines.beam import Beam
from trainer.data.preparing.parts import DamagedPart, Part
from trainer.data.preparing.rows import Row, RowBytes
from trainer.data.preparing.shards import Planned, PlannedShard, Records
from trainer.data.sources.source import SourceImage
from trainer.data.stored.metadata import StoredShard

_NUM_CONNECTIONS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Located:
    """A row with the location of its prepared image."""

    row: Row
    path: str
    offset: int

    def read(self) -> RowBytes:
        """Return the row with its image.

        Raises:
            DamagedPart: The part contains another image there.
        """
        image = storage.read_range(self.path, self.offset, self.row.num_stored_bytes)
        if hashlib.sha256(image).hexdigest() != self.row.stored_hash:
            raise DamagedPart(f"{self.path} was changed")
        return self.row, image


class Distributed:
    """Keeps the parts; the offset of a row is its position in the concatenation of all parts."""

    def __init__(self, beam: Beam, parts_folder: str, *, is_remote: bool) -> None:
        """Set the workers and the folder of the parts.

        Args:
            beam: Applies functions on the workers.
            parts_folder: Local or gs://, readable and writable by all workers; empty to remove the parts at the end.
            is_remote: Whether the dataset will be on gs://.
        """
        self.copied: dict[str, bucket.Version] = {}
        self._beam = beam
        self._parts_folder = parts_folder or storage.join(beam.folder, "parts")
        self._is_copied = is_remote and beam.is_remote
        self._names: list[str] = []
        self._starts: list[int] = []
        self._end = 0

    def read(self, images: Iterable[SourceImage], image_size: int) -> Iterator[Sequence[Row]]:
        """Yield the rows of images, after all are examined.

        Raises:
            UserError: The workers cannot open the images.
        """
        items = batched(map(self._check, images), parts.MAX_IMAGES)
        for part in self._beam.map(
            functools.partial(parts.make, image_size=image_size, folder=self._parts_folder), items
        ):
            yield self._append(*parts.load(self._parts_folder, part.name))

    def take_part(self, name: str) -> tuple[list[Row], int]:
        """Return the rows of a part; its images are checked when they are read."""
        part, rows = parts.load(self._parts_folder, name)
        path = parts.path_of_bytes(self._parts_folder, name)
        if not storage.exists(path) or storage.size(path) != part.num_bytes:
            raise DamagedPart(f"{path} is missing or has another size")
        return self._append(part, rows), part.began_ns

    def images(self, rows: Iterable[Row]) -> Iterator[RowBytes]:
        """Yield each row with its prepared image."""
        return in_order(_Located.read, self._locate(rows), num_threads=_NUM_CONNECTIONS)

    def write_shards(self, directory: storage.Path, planned: Planned, records: Records) -> Iterator[StoredShard]:
        """Write shards on the workers, except those with images of the previous dataset, which are written here."""
        here = []

        def items() -> Iterator[tuple[PlannedShard, list[_Located]]]:
            for shard, rows in planned:
                some = list(rows)
                if any(row.origin for row in some):
                    here.append(shards.write(directory, shard, records(some)))
                else:
                    yield shard, list(self._locate(some))

        written = list(self._beam.map(functools.partial(_write, self._beam.folder), items()))
        self._place(directory, written)
        yield from (*here, *written)

    def close(self) -> None:
        """Remove the files of this attempt, whose shards are already in the dataset."""
        self._beam.close()

    def _check(self, image: SourceImage) -> SourceImage:
        wanted = "gs://" if self._beam.is_remote else ""
        if not (image.location and image.location.startswith(wanted)):
            raise UserError(
                f"image {image.name!r} cannot be read by other machines: it is not a file{wanted and ' in a bucket'};"
                " use prepare_engine=local"
            )
        return image

    def _append(self, part: Part, rows: Sequence[Row]) -> list[Row]:
        start = self._end
        self._names.append(part.name)
        self._starts.append(start)
        self._end += part.num_bytes
        return [dataclasses.replace(row, offset=start + row.offset) for row in rows]

    def _locate(self, rows: Iterable[Row]) -> Iterator[_Located]:
        for row in rows:
            # A part without bytes has the same start as the next one, so the last of equal starts has the image.
            index = bisect.bisect_right(self._starts, row.offset) - 1
            path = parts.path_of_bytes(self._parts_folder, self._names[index])
            yield _Located(row=row, path=path, offset=row.offset - self._starts[index])

    def _place(self, directory: storage.Path, written: Sequence[StoredShard]) -> None:
        """Move the workers' shards into the dataset; within a bucket they are copied when it is published."""
        versions = bucket.versions(self._beam.folder) if self._is_copied and written else {}
        for shard in written:
            path, target = storage.join(self._beam.folder, shard.name), pathlib.Path(directory, shard.name)
            if self._is_copied:
                self.copied[shard.name] = versions[shard.name]
                target.touch()
            elif self._beam.is_remote:
                with target.open("wb") as file:
                    downloads.download(path, file)
            else:
                shutil.move(path, target)


def _write(folder: str, item: tuple[PlannedShard, Sequence[_Located]]) -> StoredShard:
    shard, located = item
    # In a temporary folder, because another worker may write the same shard at the same time.
    with tempfile.TemporaryDirectory(prefix="shard-") as scratch:
        images = in_order(_Located.read, located, num_threads=_NUM_CONNECTIONS)
        written = shards.write(scratch, shard, shards.serialize_rows(images))
        with open(os.path.join(scratch, shard.name), "rb") as file:
            storage.write_file(storage.join(folder, shard.name), file)
    return written
