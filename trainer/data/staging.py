"""Copies a dataset in a bucket to this machine's disk once; its records are then read by index from there."""

import base64
import contextlib
import dataclasses
import errno
import fcntl
import io
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from exact_resume.files import downloads, storage
from exact_resume.files.overlap import in_order
from localvertex_base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data.dataset import Dataset
from trainer.data.stored.shards import DamagedShard

_NUM_THREADS = 8
_PIECE_BYTES = 2**20


def stage(dataset: Dataset, split: str) -> Dataset:
    """Return the dataset with the split's shards on a local disk; a local dataset is returned unchanged.

    Shards appear complete or not at all, under a lock that the replicas of a machine share: the first one copies, the
    others wait. A finished copy is reused and an interrupted one is continued. A copy counts as finished when its
    CRC32C is that of dataset.json.

    Raises:
        UserError: A shard is missing or damaged in the bucket, or the disk is too small.
        TrainingError: The bucket has another number of bytes than before, or the disk filled up during the copy.
        OSError: The bucket cannot be read.
    """
    if not storage.is_object_store(dataset.directory):
        return dataset
    folder = directory(dataset.fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = dataset.shard_sizes(split)
    expected = {shard.name: shard.crc32c for shard in dataset.shards[split]}
    with _lock(folder):
        missing = {path: size for path, size in sizes.items() if _length(folder / os.path.basename(path)) != size}
        _refuse_small_disk(folder, missing)
        try:
            copies = in_order(
                lambda path: _copy(path, folder, missing[path], expected), missing, num_threads=_NUM_THREADS
            )
            for _ in copies:
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise TrainingError(
                f"the disk of {folder} filled up while {dataset.directory} was copied to it; free some space and run"
                " again, the copy resumes"
            ) from error
    return dataclasses.replace(dataset, directory=str(folder))


def directory(fingerprint: str) -> pathlib.Path:
    """Return the folder a dataset is staged in: below $XDG_CACHE_HOME, or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "vertex-gpu-training" / "datasets" / fingerprint[:32]


def _refuse_small_disk(folder: pathlib.Path, missing: dict[str, int]) -> None:
    needed = sum(size - min(size, _length(_partial(folder, path))) for path, size in missing.items())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder} has {free / 2**30:.1f} GiB free, the dataset needs {needed / 2**30:.1f} GiB more; give the"
            " machine a larger boot disk, or set XDG_CACHE_HOME to a folder on a larger disk"
        )


def _copy(path: str, folder: pathlib.Path, size: int, expected: dict[str, str]) -> None:
    """Copy a shard, or continue its copy."""
    partial, name = _partial(folder, path), os.path.basename(path)
    if _length(partial) > size:
        partial.unlink()
    is_continued = _length(partial) > 0
    # The library writes 8 KiB at a time.
    with _Summed(partial) as file, io.BufferedWriter(file, _PIECE_BYTES) as target:
        downloads.download(path, target)
        target.flush()
        os.fsync(target.fileno())
    if (length := _length(partial)) != size:
        partial.unlink()
        raise TrainingError(f"{path} has {size} bytes, but {length} were read; run again")
    found = file.crc32c()
    if found == expected[name]:
        os.replace(partial, folder / name)
        return
    partial.unlink()
    if not is_continued:
        raise DamagedShard(
            f"shard {path} is damaged (its CRC32C is {found}, expected {expected[name]}); run prepare again"
        )
    # Only the interrupted copy may be damaged.
    _copy(path, folder, size, expected)


class _Summed(io.FileIO):
    """A file whose checksum is computed while it grows, because reading it again takes as long as the copy.

    SHA-256 alone would take as long as the rest of the copy; CRC32C takes a twentieth of it.
    """

    def __init__(self, path: pathlib.Path) -> None:
        """Open it at its end."""
        import google_crc32c

        super().__init__(path, "ab")
        self._checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
        if _length(path):
            with path.open("rb") as present:
                while piece := present.read(_PIECE_BYTES):
                    self._checksum.update(piece)  # type: ignore[no-untyped-call]

    def write(self, data: Any) -> int:
        """Append bytes, perhaps not all of them."""
        num_written = super().write(data)
        self._checksum.update(bytes(data[:num_written]))
        return num_written

    def crc32c(self) -> str:
        """Return the checksum of the whole content, in base64."""
        return base64.b64encode(self._checksum.digest()).decode()


def _partial(folder: pathlib.Path, path: str) -> pathlib.Path:
    return folder / f".{os.path.basename(path)}.partial"


def _length(path: pathlib.Path) -> int:
    """Return the size in bytes; 0 where the file does not exist."""
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def _lock(folder: pathlib.Path) -> Iterator[None]:
    # The kernel releases the lock when the process ends, however that happens.
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
