"""A dataset that lies in a bucket, copied to this machine's disk once: records are then read by index from there."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.errors import TrainingError
from trainer.files import bucket, storage
from userinput.errors import UserError

_CHUNK_BYTES = 16 * 2**20
_NUM_THREADS = 8


def stage(dataset: Dataset, split: str) -> Dataset:
    """The dataset with the split's shards on a local disk; itself if it is there already.

    Shards appear whole, under a lock that the replicas of a machine share: the first one copies, the others wait and
    find them. What was copied before stays; a shard that was broken off is continued.

    Raises:
        UserError: a shard is missing in the bucket, or the disk is too small.
        TrainingError: reading failed, or the disk became full meanwhile.
    """
    if not storage.is_object_store(dataset.directory):
        return dataset
    folder = directory(dataset.fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {path: _size(path, dataset.directory) for path in dataset.shard_paths(split)}
    with _lock(folder):
        missing = {path: size for path, size in sizes.items() if _length(folder / os.path.basename(path)) != size}
        _refuse_small_disk(folder, missing)
        try:
            with ThreadPoolExecutor(_NUM_THREADS) as pool:
                list(pool.map(lambda path: _copy(path, folder, missing[path]), missing))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise TrainingError(
                f"the disk of {folder} became full while {dataset.directory} was copied there; make room and start"
                " again, it goes on there"
            ) from error
        except tf.errors.OpError as error:
            raise TrainingError(
                f"copying {dataset.directory} failed: {' '.join(error.message.split())[:300]}"
            ) from error
    return dataclasses.replace(dataset, directory=str(folder))


def directory(fingerprint: str) -> pathlib.Path:
    """Where a dataset is staged: below $XDG_CACHE_HOME, or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "vertex-gpu-training" / "datasets" / fingerprint[:32]


def _size(path: str, directory: str) -> int:
    try:
        with bucket.errors_of(path):
            return int(tf.io.gfile.stat(path).length)
    except FileNotFoundError as error:
        raise UserError(f"shard {path} is missing: {directory} is not whole; run the prepare step again") from error


def _refuse_small_disk(folder: pathlib.Path, missing: dict[str, int]) -> None:
    wanted = sum(size - min(size, _length(_aside(folder, path))) for path, size in missing.items())
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise UserError(
            f"{folder} has {free / 2**30:.1f} GiB free, the dataset needs {wanted / 2**30:.1f} GiB more there; give the"
            " machine a larger boot disk, or name a folder on a larger one in XDG_CACHE_HOME"
        )


def _copy(path: str, folder: pathlib.Path, size: int) -> None:
    aside = _aside(folder, path)
    if _length(aside) > size:
        aside.unlink()
    with tf.io.gfile.GFile(path, "rb") as source, aside.open("ab") as target:
        source.seek(target.tell())
        while data := source.read(_CHUNK_BYTES):
            target.write(data)
        target.flush()
        os.fsync(target.fileno())
    if (length := _length(aside)) != size:
        aside.unlink()
        raise TrainingError(f"{path} has {size} bytes, {length} were read; start again")
    os.replace(aside, folder / os.path.basename(path))


def _aside(folder: pathlib.Path, path: str) -> pathlib.Path:
    return folder / f".{os.path.basename(path)}.partial"


def _length(path: pathlib.Path) -> int:
    """Size in bytes; 0 where there is no such file."""
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def _lock(folder: pathlib.Path) -> Iterator[None]:
    # The kernel releases it with the process, however that ends.
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
