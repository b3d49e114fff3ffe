"""What every engine offers: it reads and examines images, keeps them, and writes shards of them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from trainer.data.preparing.rows import Row
from trainer.data.preparing.shards import Shard
from trainer.data.sources.source import SourceImage
from trainer.data.stored.metadata import StoredShard
from trainer.files import bucket

Records = Callable[[Iterable[Row]], Iterator[tuple[Row, bytes]]]
"""Yields each row with its record as it is stored."""


class Engine(Protocol):
    """Does the work on images and shards. The offsets of its rows have a meaning only for itself."""

    copied: dict[str, bucket.Version]
    """Name of a shard that is written -> the object that is copied for it into the dataset on the server's side."""

    def read(self, images: Iterable[SourceImage], image_size: int) -> Iterator[Sequence[Row]]:
        """Yield the rows of images in their order, several at a time, after their prepared images are kept.

        Raises:
            UserError: The engine cannot read such images.
        """
        ...

    def take_part(self, name: str) -> tuple[list[Row], int]:
        """Return the rows of a part that an earlier attempt left, and the time before its first image was read.

        Raises:
            DamagedPart: It is not used.
        """
        ...

    def images(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
        """Yield rows of this engine, each with its prepared image."""
        ...

    def write_shards(
        self, directory: str | os.PathLike[str], planned: Iterable[tuple[Shard, Iterable[Row]]], records: Records
    ) -> Iterator[StoredShard]:
        """Write shards and yield what they contain, in any order.

        Args:
            directory: Of the dataset, on this machine; what is in `copied` is an empty file there.
            planned: Shards, each with its rows in their order.
            records: Of rows of this engine and of the previous dataset.
        """
        ...

    def close(self) -> None:
        """Remove what nothing needs after the dataset is published."""
        ...
