"""Plans and writes shards: one for each prefix of a split's content hashes, each from its own rows alone."""

import contextlib
import dataclasses
import errno
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator

from exact_resume.files import storage
from exact_resume.files.bucket_upload import crc32c
from trainer.data.preparing import prefixes
from trainer.data.preparing.rows import Row, RowBytes, Rows
from trainer.data.stored.metadata import NAME, StoredShard
from trainer.data.stored.records import Record, serialize


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedShard:
    """A shard that is not written yet."""

    split: str
    prefix: str
    """Bits that the content hashes of its records begin with."""
    name: str
    """File name in the dataset's folder."""

    def rows(self, rows: Rows) -> Iterator[Row]:
        """Yield its rows in the order of its records."""
        return rows.used_rows(self.split, *prefixes.bounds(self.prefix))


Planned = Iterable[tuple[PlannedShard, Iterable[Row]]]
"""Shards, each with its rows in their order."""
Records = Callable[[Iterable[Row]], Iterator[RowBytes]]
"""A function that yields each row with its record as it is stored."""


def plan(split: str, rows: Rows) -> list[PlannedShard]:
    """Return the shards of a split, in the order of the hashes: a function of the rows."""
    found = list(prefixes.layout(functools.partial(rows.extent, split)))
    return [
        PlannedShard(split=split, prefix=prefix, name=f"{NAME}-{split}.array_record-{number:05d}-of-{len(found):05d}")
        for number, prefix in enumerate(found)
    ]


def distinct(row: Row) -> bytes:
    """Return everything that distinguishes the image of a row within a split; its name does not."""
    return f"{row.label}:{row.content_hash or ''}:{row.stored_hash};".encode()


def write(directory: storage.Path, shard: PlannedShard, records: Iterable[RowBytes]) -> StoredShard:
    """Write a shard; the same images give the same bytes on every machine.

    Args:
        directory: Where, on this machine.
        shard: Which.
        records: Its rows in their order, each with its record as `serialize_rows` returns it.
    """
    path = os.path.join(directory, shard.name)
    digest = hashlib.sha256()
    num_records = _write_records(path, records, digest.update)
    with open(path, "rb") as file:
        sha256, checksum = hashlib.file_digest(file, "sha256").hexdigest(), crc32c(file)
    return StoredShard(
        name=shard.name,
        prefix=shard.prefix,
        num_records=num_records,
        num_bytes=os.path.getsize(path),
        digest=digest.hexdigest(),
        sha256=sha256,
        crc32c=checksum,
    )


def serialize_rows(images: Iterable[RowBytes]) -> Iterator[RowBytes]:
    """Yield each row, which is used, with its record as it is stored, from its prepared image."""
    for row, image_bytes in images:
        if row.figures is None or row.label is None:
            raise ValueError(f"image {row.name!r} is rejected")
        record = Record(image_bytes=image_bytes, label=row.label, file_name=row.name, figures=row.figures)
        yield row, serialize(record)


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn errors that ArrayRecord's writer raises for a full or failing disk into those of Python.

    Raises:
        OSError: Without a path, because the folder has a temporary name.
    """
    try:
        yield
    except RuntimeError as error:
        found = (number for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO) if os.strerror(number) in str(error))
        if (number := next(found, None)) is None:
            raise
        raise OSError(number, os.strerror(number)) from error


@_disk_errors()
def _write_records(path: str, records: Iterable[RowBytes], add: Callable[[bytes], None]) -> int:
    from array_record.python.array_record_module import ArrayRecordWriter

    num_records = 0
    # One record per group, because records are read one by one in random order. Images are compressed already.
    writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
    for row, record in records:
        writer.write(record)
        add(distinct(row))
        num_records += 1
    writer.close()
    return num_records
