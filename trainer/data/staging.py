"""Copies a dataset in a bucket to this machine's disk once; its records are then read by index from there."""

import dataclasses
import errno
import fcntl
import os
import pathlib
import shutil

from exact_resume.files import bucket, downloads, storage
from exact_resume.files.overlap import in_order
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data.dataset import Dataset
from trainer.data.stored.shards import DamagedShard

_NUM_THREADS = 8
_PIECE_BYTES = 2**20


def stage(dataset: Dataset, split: str) -> Dataset:
    """Return the dataset with the split's shards on a local disk; a local dataset is returned unchanged.

    Shards appear complete or not at all, under a lock that the replicas of a machine share: the first one copies, the
    others wait. Finished shards are reused. A shard counts as finished when its CRC32C is that of dataset.json.

    Raises:
        UserError: A shard is missing or damaged in the bucket, or the disk is too small.
        TrainingError: The disk filled up during the copy.
        OSError: The bucket cannot be read.
    """
    if not storage.is_object_store(dataset.directory):
        return dataset
    folder = directory(dataset.fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = dataset.shard_sizes(split)
    expected = {shard.name: shard.crc32c for shard in dataset.shards[split]}
    with (folder / ".lock").open("w") as lock:
        # The kernel releases the lock when the process ends, however that happens.
        fcntl.flock(lock, fcntl.LOCK_EX)
        copies = {path: folder / os.path.basename(path) for path in sizes}
        missing = [path for path, copy in copies.items() if not copy.exists() or copy.stat().st_size != sizes[path]]
        needed, free = sum(sizes[path] for path in missing), shutil.disk_usage(folder).free
        if needed > free:
            raise UserError(
                f"{folder} has {free / 2**30:.1f} GiB free, the dataset needs {needed / 2**30:.1f} GiB more; give the"
                " machine a larger boot disk, or set XDG_CACHE_HOME to a folder on a larger disk"
            )
        try:
            for _ in in_order(
                lambda path: _copy(path, folder, expected[os.path.basename(path)]), missing, num_threads=_NUM_THREADS
            ):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise TrainingError(
                f"the disk of {folder} filled up while {dataset.directory} was copied to it; free some space and run"
                " again: finished shards are kept"
            ) from error
    return dataclasses.replace(dataset, directory=str(folder))


def directory(fingerprint: str) -> pathlib.Path:
    """Return the folder a dataset is staged in: below $XDG_CACHE_HOME, or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "vertex-gpu-training" / "datasets" / fingerprint[:32]


def _copy(path: str, folder: pathlib.Path, expected: str) -> None:
    """Copy a shard and check it."""
    name = os.path.basename(path)
    partial = folder / f".{name}.partial"
    with partial.open("wb", buffering=_PIECE_BYTES) as target:
        downloads.download(path, target)
        target.flush()
        os.fsync(target.fileno())
    if (found := bucket.crc32c(str(partial))) != expected:
        partial.unlink()
        raise DamagedShard(f"shard {path} is damaged (its CRC32C is {found}, expected {expected}); run prepare again")
    os.replace(partial, folder / name)
