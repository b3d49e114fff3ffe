"""The engine that uses only this process, with all cores of the machine."""

import dataclasses
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from exact_resume.files import bucket, storage
from trainer.data.preparing import parts, shards
from trainer.data.preparing.read import examine_images
from trainer.data.preparing.rows import Row, RowBytes
from trainer.data.preparing.shards import Planned, Records
from trainer.data.sources.source import SourceImage
from trainer.data.stored.metadata import StoredShard


class Local:
    """Keeps the prepared images in a file, one after the other."""

    def __init__(self, file: BinaryIO, parts_folder: str) -> None:
        """Set the files.

        Args:
            file: Receives the prepared images.
            parts_folder: Folder for parts that a later attempt can use, local or gs://; empty for none.
        """
        self.copied: dict[str, bucket.Version] = {}
        """Name of a written shard -> the object that the bucket copies into the dataset for it."""
        self._file = file
        self._parts_folder = parts_folder

    def read(self, images: Iterable[SourceImage], image_size: int) -> Iterator[Sequence[Row]]:
        """Yield the rows of images in their order, several at a time, after their prepared images are kept."""
        if self._parts_folder:
            return parts.make_all(images, image_size, self._file, self._parts_folder)
        return examine_images(images, image_size, self._file)

    def take_part(self, name: str) -> tuple[list[Row], int]:
        """Return the rows of a part that an earlier attempt left, and the time before its first image was read.

        Raises:
            DamagedPart: The part is incomplete or was changed.
        """
        start = self._file.seek(0, os.SEEK_END)
        part, rows = parts.load(self._parts_folder, name)
        with parts.open_bytes(self._parts_folder, part) as file:
            shutil.copyfileobj(file, self._file)
        return [dataclasses.replace(row, offset=row.offset + start) for row in rows], part.began_ns

    def images(self, rows: Iterable[Row]) -> Iterator[RowBytes]:
        """Yield each row of this engine with its prepared image."""
        for row in rows:
            self._file.seek(row.offset)
            yield row, self._file.read(row.num_stored_bytes)

    def write_shards(self, directory: storage.Path, planned: Planned, records: Records) -> Iterator[StoredShard]:
        """Write shards and yield what they contain, in any order.

        Args:
            directory: Folder of the dataset on this machine, where shards in `copied` are empty files.
            planned: The shards.
            records: Yields records for rows of this engine and of the previous dataset.
        """
        return (shards.write(directory, shard, records(rows)) for shard, rows in planned)

    def close(self) -> None:
        """Do nothing; the caller closes the file."""
