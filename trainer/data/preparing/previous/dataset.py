"""What the next dataset takes of the previous one: rows, splits and prepared images."""

import bisect
import contextlib
import dataclasses
import hashlib
import itertools
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from exact_resume.files import bucket, downloads, storage
from localvertex._base.userinput.errors import UserError
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.data.preparing.previous.history import HistoryEntry, NoHistory, Unusable
from trainer.data.preparing.rows import Row, Values
from trainer.data.sources.source import Identity
from trainer.data.splits import SPLITS
from trainer.data.stored.metadata import StoredShard


class NoPreviousDataset:
    """There is no previous dataset."""

    entry: HistoryEntry | None = None
    folder = ""
    """Folder on this machine with its metadata and its list of images."""

    def rows(self) -> Iterator[tuple[Values, Identity]]:
        """Yield the content of all rows, by name, and their identities."""
        return iter(())

    def records(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the record of each row, all of which it has, as it is stored there."""
        return iter(())

    def close(self) -> None:
        """Close the shards."""


class PreviousDataset(NoPreviousDataset):
    """The previous dataset. Everything taken of it is checked; `Unusable` is raised where it was changed or removed."""

    def __init__(self, entry: HistoryEntry, scratch: pathlib.Path, *, image_size: int) -> None:
        """Check that all files are there, and the metadata and the list of images.

        Args:
            entry: Entry of the dataset in the history.
            scratch: A folder on this machine for copies; the caller removes it.
            image_size: Image size of the next dataset.

        Raises:
            Unusable: The dataset is missing or was changed.
            OSError: The bucket cannot be read.
        """
        self.entry: HistoryEntry = entry
        self.folder = str(scratch)
        self._is_elsewhere = storage.is_remote(entry.dataset)
        self._dataset = self._check(scratch)
        if self._dataset.image_size != image_size:
            # The history was copied from another folder.
            raise Unusable(f"{entry.dataset} has images of {self._dataset.image_size} pixels")
        self._ends = {
            split: list(itertools.accumulate(shard.num_records for shard in self._dataset.shards[split]))
            for split in SPLITS
        }
        self._opened: dict[str, tuple[str, contextlib.ExitStack, Any]] = {}

    def rows(self) -> Iterator[tuple[Values, Identity]]:
        """Yield the content of all rows, by name, and their identities."""
        return image_list.values(self.folder, self._dataset.class_names)

    def close(self) -> None:
        """Close the shards."""
        for _, stack, _ in self._opened.values():
            stack.close()
        self._opened.clear()

    def records(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the record of each row of this dataset, as it is stored.

        Raises:
            Unusable: A shard is missing or was changed.
        """
        for row in rows:
            index = bisect.bisect_right(self._ends[row.origin], row.offset)
            shard = self._dataset.shards[row.origin][index]
            reader = self._open(row.origin, shard)
            try:
                reader.seek(row.offset - self._ends[row.origin][index] + shard.num_records)
                record: bytes = reader.read()
            except RuntimeError as error:
                raise Unusable(f"shard {shard.name} of {self.entry.dataset} cannot be read ({error})") from error
            # Checksums would not find a record that is in another place than the list has it.
            if not row.content_hash or row.content_hash.encode() not in record or row.name.encode() not in record:
                raise Unusable(f"{self.entry.dataset} has another image for {row.name}")
            yield record

    def _check(self, scratch: pathlib.Path) -> Dataset:
        expected = {dataset.METADATA_FILE: self.entry.metadata_sha256, image_list.FILE: self.entry.list_sha256}

        for name, sha256 in expected.items():
            self._copy(storage.join(self.entry.dataset, name), scratch / name, sha256)
        versions = bucket.versions(self.entry.dataset) if self._is_elsewhere else {}
        try:
            found = dataclasses.replace(dataset.load(str(scratch)), directory=self.entry.dataset)
            stored = [shard for split in SPLITS for shard in found.shards[split]]
            is_whole = all(
                each.name in versions and versions[each.name].crc32c == each.crc32c
                if self._is_elsewhere
                else storage.size(storage.join(found.directory, each.name)) == each.num_bytes
                for each in stored
            )
        except (UserError, FileNotFoundError) as error:
            raise Unusable(str(error)) from error
        if not is_whole:
            raise Unusable(f"a shard of {self.entry.dataset} is missing or was changed")
        return found

    def _copy(self, path: str, target: pathlib.Path, sha256: str) -> None:
        """Copy a file to this machine and check it."""
        try:
            with target.open("wb") as copy:
                downloads.download(path, copy)
        except storage.MISSING:
            raise Unusable(f"{path} is missing") from None
        except PermissionError:
            raise Unusable(f"{path} cannot be read: permission denied") from None
        if _sha256(target) != sha256:
            raise Unusable(f"{path} was changed")

    def _open(self, split: str, shard: StoredShard) -> Any:
        """Open a shard on this machine; one per split is kept, because rows ask for one after the other."""
        from array_record.python.array_record_module import ArrayRecordReader

        if split in self._opened:
            name, stack, reader = self._opened[split]
            if name == shard.name:
                return reader
            del self._opened[split]
            stack.close()
        path = storage.join(self.entry.dataset, shard.name)
        with contextlib.ExitStack() as opening:
            if self._is_elsewhere:
                descriptor, copy = tempfile.mkstemp(dir=self.folder, prefix=shard.name)
                os.close(descriptor)
                opening.callback(os.unlink, copy)
                self._copy(path, pathlib.Path(copy), shard.sha256)
                path = copy
            try:
                # Each record has a checksum, too, but it would not find a shard of another dataset.
                if not self._is_elsewhere and bucket.crc32c(path) != shard.crc32c:
                    raise Unusable(f"{path} was changed")
                # The other threads of a reader take longer than all records that are read one after the other.
                reader = ArrayRecordReader(path, "readahead_buffer_size:0,max_parallelism:0")
            except (RuntimeError, PermissionError, *storage.MISSING) as error:
                raise Unusable(f"shard {path} cannot be read ({error})") from error
            opening.callback(reader.close)
            self._opened[split] = (shard.name, opening.pop_all(), reader)
        return reader


def previous_of(history: NoHistory, scratch: pathlib.Path, *, image_size: int) -> NoPreviousDataset:
    """Open the previous dataset, if there is one; the one before, if the newest is lost.

    Args:
        history: Names the previous datasets.
        scratch: A folder on this machine for copies; the caller removes it.
        image_size: Image size of the next dataset.

    Raises:
        Unusable: Both are missing or were changed.
    """
    lost: Unusable | None = None
    for entry in history.read():
        try:
            found = PreviousDataset(entry, scratch, image_size=image_size)
        except Unusable as error:
            # Otherwise its attempt was killed before it published it.
            if entry.is_published:
                lost = lost or error
            continue
        if lost:
            print(f"note: the newest dataset cannot be used ({lost}); the one before is used", file=sys.stderr)
        return found
    if lost:
        raise lost
    return NoPreviousDataset()


def entry_of(directory: pathlib.Path, address: str, *, began_ns: int) -> HistoryEntry:
    """Return the entry of a dataset that is not published yet.

    Args:
        directory: Its files on this machine.
        address: Where it will be.
        began_ns: Time before the first image was read, in nanoseconds.
    """
    return HistoryEntry(
        dataset=address,
        metadata_sha256=_sha256(directory / dataset.METADATA_FILE),
        list_sha256=_sha256(directory / image_list.FILE),
        began_ns=began_ns,
        is_published=False,
    )


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
