"""The interface of the engines, which read, examine and keep images and write their shards."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from exact_resume.files import bucket
from trainer.data.preparing.rows import Row
from trainer.data.preparing.shards import PlannedShard
from trainer.data.sources.source import SourceImage
from trainer.data.stored.metadata import StoredShard

Records = Callable[[Iterable[Row]], Iterator[tuple[Row, bytes]]]
"""A function that yields each row with its record as it is stored."""


class Engine(Protocol):
    """Examines images and writes shards. Only the engine itself interprets the offsets of its rows."""

    copied: dict[str, bucket.Version]
    """Name of a written shard -> the object that the bucket copies into the dataset for it."""

    def read(self, images: Iterable[SourceImage], image_size: int) -> Iterator[Sequence[Row]]:
        """Yield the rows of images in their order, several at a time, after their prepared images are kept.

        Raises:
            UserError: The engine cannot read such images.
        """
        ...

    def take_part(self, name: str) -> tuple[list[Row], int]:
        """Return the rows of a part that an earlier attempt left, and the time before its first image was read.

        Raises:
            DamagedPart: The part is incomplete or was changed.
        """
        ...

    def images(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
        """Yield each row of this engine with its prepared image."""
        ...

    def write_shards(
        self, directory: str | os.PathLike[str], planned: Iterable[tuple[PlannedShard, Iterable[Row]]], records: Records
    ) -> Iterator[StoredShard]:
        """Write shards and yield what they contain, in any order.

        Args:
            directory: Folder of the dataset on this machine, where shards in `copied` are empty files.
            planned: Shards, each with its rows in their order.
            records: Yields records for rows of this engine and of the previous dataset.
        """
        ...

    def close(self) -> None:
        """Remove temporary files after the dataset is published."""
        ...
