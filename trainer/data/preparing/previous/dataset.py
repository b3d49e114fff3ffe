"""What the next dataset takes of the previous one: rows, prepared images, and whole shards that have not changed."""

import bisect
import contextlib
import dataclasses
import hashlib
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence

from exact_resume.files import bucket, downloads, storage
from exact_resume.files.overlap import begun, in_order
from localvertex_base.userinput.errors import UserError
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list, prefixes, shards
from trainer.data.preparing.previous.history import HistoryEntry, NoHistory, Unusable
from trainer.data.preparing.rows import Row, Rows
from trainer.data.preparing.shards import PlannedShard
from trainer.data.sources.source import Identity
from trainer.data.splits import SPLITS
from trainer.data.stored.metadata import StoredShard
from trainer.data.stored.records import image_of
from trainer.data.stored.shards import DamagedShard, Shards


class NoPreviousDataset:
    """There is no previous dataset."""

    entry: HistoryEntry | None = None
    folder = ""
    """On this machine, with its metadata and its list of images."""

    def __init__(self) -> None:
        self.copied: dict[str, bucket.Version] = {}
        """Name of a shard of the next dataset -> the object that is copied for it on the server's side."""
        self.reused: dict[str, int] = {}
        """Name of a shard of the next dataset that is taken as it is -> its size."""

    def rows(self) -> Iterator[tuple[tuple[str | int | None, ...], Identity]]:
        """Yield what all rows contain, by name, and their identities."""
        return iter(())

    def images(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the prepared image of each row, all of which it has."""
        return iter(())

    def records(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the record of each row, all of which it has, as it is to be stored."""
        return iter(())

    def is_unchanged(self, shard: PlannedShard, rows: Rows) -> bool:
        """Return whether a shard exists with the same records."""
        return False

    def shard(self, shard: PlannedShard, is_unchanged: bool, directory: str | os.PathLike[str]) -> StoredShard | None:
        """Put a shard that is unchanged into a folder."""
        return None

    def close(self) -> None:
        """Close the shards."""


class PreviousDataset(NoPreviousDataset):
    """The previous dataset. Everything taken of it is checked; `Unusable` is raised where it was changed or removed."""

    def __init__(self, entry: HistoryEntry, scratch: pathlib.Path, *, image_size: int, is_remote: bool) -> None:
        """Check that all files are there, and the metadata and the list of images.

        Args:
            entry: What it was when it was made.
            scratch: A folder on this machine for copies; the caller removes it.
            image_size: That of the next dataset.
            is_remote: Whether the next dataset will be on gs://.

        Raises:
            Unusable: The dataset is missing or was changed.
            OSError: The bucket cannot be read.
        """
        super().__init__()
        self.entry: HistoryEntry = entry
        self.folder = str(scratch)
        self._is_remote = is_remote
        self._is_elsewhere = storage.is_remote(entry.dataset)
        self._dataset = self._check(scratch)
        if self._dataset.image_size != image_size:
            # The history was copied from another folder.
            raise Unusable(f"{entry.dataset} has images of {self._dataset.image_size} pixels")
        self._shards = {(split, shard.prefix): shard for split in SPLITS for shard in self._dataset.shards[split]}
        self._ends = {
            split: list(itertools.accumulate(shard.num_records for shard in self._dataset.shards[split]))
            for split in SPLITS
        }
        self._opened: dict[str, tuple[str, contextlib.ExitStack, Shards]] = {}
        self._ready: dict[str, str] = {}
        """Name of a shard that is to be read -> its path on this machine."""
        self._checked_names: set[str] = set()
        """Of the shards whose CRC32C was compared. Each record has a checksum of its own, which ArrayRecord checks."""

    def rows(self) -> Iterator[tuple[tuple[str | int | None, ...], Identity]]:
        """Yield what all rows contain, by name, and their identities."""
        return image_list.values(self.folder, self._dataset.class_names)

    def close(self) -> None:
        """Close the shards."""
        for _, stack, _ in self._opened.values():
            stack.close()
        self._opened.clear()

    def images(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the prepared image of each row of this dataset.

        Raises:
            Unusable: A shard is missing or was changed.
        """
        return map(image_of, self._stored(rows))

    def records(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the record of each row of this dataset: the same bytes, except where the image has a new label.

        Raises:
            Unusable: A shard is missing or was changed.
        """
        for row, stored in zip(rows, self._stored(rows), strict=True):
            if row.origin.partition(":")[2] == str(row.label):
                yield stored
            else:
                yield from (record for _, record in shards.serialize_rows([(row, image_of(stored))]))

    def _stored(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Yield the record of each row as it is in this dataset."""
        wanted: dict[tuple[str, int], list[int]] = {}
        for row in rows:
            split = row.origin.partition(":")[0]
            wanted.setdefault((split, bisect.bisect_right(self._ends[split], row.offset)), []).append(row.offset)
        found: dict[tuple[str, int], bytes] = {}
        for (split, index), numbers in wanted.items():
            shard = self._dataset.shards[split][index]
            start = self._ends[split][index] - shard.num_records
            try:
                read = self._open(split, shard).read([number - start for number in numbers])
            except (DamagedShard, PermissionError, *storage.MISSING) as error:
                raise Unusable(str(error)) from error
            found |= {(split, number): data for number, data in zip(numbers, read, strict=True)}
        for row in rows:
            record = found[row.origin.partition(":")[0], row.offset]
            # Checksums would not find a record that is in another place than the list has it.
            if not row.content_hash or row.content_hash.encode() not in record:
                raise Unusable(f"{self.entry.dataset} has another image for {row.name}")
            yield record

    def is_unchanged(self, shard: PlannedShard, rows: Rows) -> bool:
        """Return whether a shard exists with the same records."""
        old = self._shards.get((shard.split, shard.prefix))
        num, num_unchanged = rows.num_unchanged(shard.split, *prefixes.bounds(shard.prefix))
        return old is not None and num == num_unchanged == old.num_records

    def shard(self, shard: PlannedShard, is_unchanged: bool, directory: str | os.PathLike[str]) -> StoredShard | None:
        """Put a shard into a folder, or note it for a copy in the bucket; if it changes, get ready to read it.

        Several threads may call it.

        Raises:
            Unusable: It was changed.
        """
        old = self._shards.get((shard.split, shard.prefix))
        if old is None:
            return None
        if not is_unchanged:
            self._ready[old.name] = self._check_path(old)
            return None
        self.reused[shard.name] = old.num_bytes
        address, path = storage.join(self.entry.dataset, old.name), pathlib.Path(directory, shard.name)
        if self._is_remote and self._is_elsewhere:
            self.copied[shard.name] = self._versions[old.name]
            # In its place, because TensorFlow Datasets looks for the names.
            path.touch()
        else:
            self._take(address, path, old.sha256)
        return dataclasses.replace(old, name=shard.name)

    def _check(self, scratch: pathlib.Path) -> Dataset:
        expected = {dataset.METADATA_FILE: self.entry.metadata_sha256, image_list.FILE: self.entry.list_sha256}

        def take(name: str) -> None:
            self._take(storage.join(self.entry.dataset, name), scratch / name, expected[name])

        with begun(lambda: bucket.versions(self.entry.dataset) if self._is_elsewhere else {}) as versions:
            for _ in in_order(take, expected, num_threads=len(expected)):
                pass
            self._versions = versions()
        try:
            found = dataclasses.replace(dataset.load(str(scratch)), directory=self.entry.dataset)
            stored = [shard for split in SPLITS for shard in found.shards[split]]
            if self._is_elsewhere:
                is_whole = all(
                    each.name in self._versions and self._versions[each.name].crc32c == each.crc32c for each in stored
                )
            else:
                is_whole = all(
                    storage.size(storage.join(found.directory, each.name)) == each.num_bytes for each in stored
                )
        except (UserError, FileNotFoundError) as error:
            raise Unusable(str(error)) from error
        if not is_whole:
            raise Unusable(f"a shard of {self.entry.dataset} is missing or was changed")
        return found

    def _take(self, path: str, target: pathlib.Path, sha256: str) -> None:
        """Link a file, or copy it where that is not possible, and check it."""
        try:
            if storage.is_remote(path):
                with target.open("wb") as copy:
                    downloads.download(path, copy)
            else:
                _link(path, target)
        except storage.MISSING:
            raise Unusable(f"{path} is missing") from None
        if _sha256(target) != sha256:
            raise Unusable(f"{path} was changed")

    def _open(self, split: str, shard: StoredShard) -> Shards:
        """Open a shard on this machine; one per split is kept, because rows ask for one after the other."""
        if split in self._opened:
            name, stack, opened = self._opened[split]
            if name == shard.name:
                return opened
            del self._opened[split]
            stack.close()
        with contextlib.ExitStack() as opening:
            path = self._ready.pop(shard.name, "") or self._check_path(shard)
            if self._is_elsewhere:
                opening.callback(os.unlink, path)
            opened = opening.enter_context(Shards([path], shard.num_records))
            self._opened[split] = (shard.name, opening.pop_all(), opened)
        return opened

    def _check_path(self, shard: StoredShard) -> str:
        """Return the path of a shard on this machine, after a comparison with its checksum."""
        path = storage.join(self.entry.dataset, shard.name)
        if self._is_elsewhere:
            descriptor, copy = tempfile.mkstemp(dir=self.folder, prefix=shard.name)
            os.close(descriptor)
            self._take(path, pathlib.Path(copy), shard.sha256)
            return copy
        try:
            if shard.name not in self._checked_names and bucket.crc32c(path) != shard.crc32c:
                raise Unusable(f"{path} was changed")
        except (PermissionError, *storage.MISSING) as error:
            raise Unusable(str(error)) from error
        self._checked_names.add(shard.name)
        return path


def previous_of(history: NoHistory, scratch: pathlib.Path, *, image_size: int, is_remote: bool) -> NoPreviousDataset:
    """Open the previous dataset, if there is one; the one before, if the newest is lost.

    Args:
        history: Names it.
        scratch: A folder on this machine for copies; the caller removes it.
        image_size: That of the next dataset.
        is_remote: Whether the next dataset will be on gs://.

    Raises:
        Unusable: Both are missing or were changed.
    """
    lost: Unusable | None = None
    for entry in history.read():
        try:
            found = PreviousDataset(entry, scratch, image_size=image_size, is_remote=is_remote)
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


def _link(path: str, target: pathlib.Path) -> None:
    # Shards are never written in place, so that two datasets may have the same file.
    try:
        if os.path.islink(path):
            raise OSError("a link itself would be linked")
        os.link(path, target)
    except storage.MISSING:
        raise
    except OSError:
        # Another file system, one without links, or a file of another user.
        try:
            shutil.copyfile(path, target)
        except PermissionError:
            raise Unusable(f"{path} cannot be read: permission denied") from None
