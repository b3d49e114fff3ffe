"""Writes the shards of a split: one for each prefix of its content hashes."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from trainer.data.preparing import prefixes
from trainer.data.preparing.rows import Row, Rows
from trainer.data.stored.metadata import NAME, StoredShard
from trainer.data.stored.records import Record, serialize

Spill = BinaryIO
"""Temporary file with the prepared images in the source's order; the rows have their offsets."""


class Digest(Protocol):
    """What hashlib returns."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""


def write(directory: str | os.PathLike[str], split: str, rows: Rows, spill: Spill, digest: Digest) -> list[StoredShard]:
    """Write the shards of a split.

    Args:
        directory: Where.
        split: Its name.
        rows: With the split of each image.
        spill: The file with the bytes of the images.
        digest: Updated with all that makes the images of a split another dataset; names do not.

    Returns:
        The shards, in the order of the hashes.
    """
    found = list(
        prefixes.layout(lambda first, last: rows.extent(split, first, last), target_bytes=prefixes.TARGET_BYTES)
    )
    shards = []
    for number, prefix in enumerate(found):
        path = os.path.join(directory, f"{NAME}-{split}.array_record-{number:05d}-of-{len(found):05d}")
        own = hashlib.sha256()

        def add(data: bytes, own: Digest = own) -> None:
            own.update(data)
            digest.update(split.encode() + b":" + data)

        num_records = _write_records(path, rows.used(split, *prefixes.bounds(prefix)), spill, add)
        with open(path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        shards.append(
            StoredShard(
                name=os.path.basename(path),
                prefix=prefix,
                num_records=num_records,
                num_bytes=os.path.getsize(path),
                digest=own.hexdigest(),
                sha256=sha256,
            )
        )
    return shards


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
def _write_records(path: str, rows: Iterator[Row], spill: Spill, add: Callable[[bytes], None]) -> int:
    from array_record.python.array_record_module import ArrayRecordWriter

    num_records = 0
    # One record per group, because records are read one by one in random order. Images are compressed already.
    writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
    for row in rows:
        if row.figures is None or row.label is None:
            continue
        spill.seek(row.offset)
        image_bytes = spill.read(row.num_stored_bytes)
        writer.write(
            serialize(Record(image_bytes=image_bytes, label=row.label, file_name=row.name, figures=row.figures))
        )
        add(f"{row.label}:{row.figures.content_hash}:{row.stored_hash};".encode())
        num_records += 1
    writer.close()
    return num_records
