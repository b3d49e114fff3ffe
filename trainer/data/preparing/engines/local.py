"""The engine that uses only this process, with all cores of the machine."""

import dataclasses
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from exact_resume.files import bucket
from trainer.data.preparing import parts, shards
from trainer.data.preparing.engines.engine import Records
from trainer.data.preparing.read import examine_images
from trainer.data.preparing.rows import Row
from trainer.data.preparing.shards import PlannedShard
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
        self._file = file
        self._parts_folder = parts_folder

    def read(self, images: Iterable[SourceImage], image_size: int) -> Iterator[Sequence[Row]]:
        """Yield the rows of images."""
        if self._parts_folder:
            return parts.make_all(images, image_size, self._file, self._parts_folder)
        return examine_images(images, image_size, self._file)

    def take_part(self, name: str) -> tuple[list[Row], int]:
        """Copy the prepared images of a part."""
        start = self._file.seek(0, os.SEEK_END)
        part, rows = parts.load(self._parts_folder, name)
        with parts.open_bytes(self._parts_folder, part) as file:
            shutil.copyfileobj(file, self._file)
        return [dataclasses.replace(row, offset=row.offset + start) for row in rows], part.began_ns

    def images(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
        """Yield each row with its prepared image."""
        for row in rows:
            self._file.seek(row.offset)
            yield row, self._file.read(row.num_stored_bytes)

    def write_shards(
        self, directory: str | os.PathLike[str], planned: Iterable[tuple[PlannedShard, Iterable[Row]]], records: Records
    ) -> Iterator[StoredShard]:
        """Write one shard after the other."""
        return (shards.write(directory, shard, records(rows)) for shard, rows in planned)

    def close(self) -> None:
        """Do nothing; the caller closes the file."""
