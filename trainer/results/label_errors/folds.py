"""Divides the training split into folds. The test split of each dataset is a fold, its training split is the rest.

These are ordinary datasets, so `trainer.task` trains on them unchanged. Each record is copied once, and the datasets
are folders of links.
"""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
from typing import Any

from exact_resume.files import bucket, storage
from localvertex_base.userinput.errors import UserError
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.stored.metadata import StoredShard
from trainer.data.stored.records import parse

_CHUNK = 256


def write(data: Dataset, local: Dataset, folder: pathlib.Path, num_folds: int) -> list[str]:
    """Write a dataset for each fold; equal images are in one fold.

    Args:
        data: The prepared dataset.
        local: The same dataset with its training and validation shards on this machine.
        folder: An empty folder.
        num_folds: 2 or more.

    Returns:
        The folders of the datasets.

    Raises:
        UserError: There are too few images.
    """
    folds = _shards(local, folder, num_folds)
    if not all(fold.num_records for fold in folds):
        raise UserError(f"{data.num_examples['train']} training images are too few for {num_folds} folds; give fewer")
    content = storage.read_json(storage.join(data.directory, dataset.METADATA_FILE))
    made = []
    for number, fold in enumerate(folds):
        own = {
            "train": [other for other in folds if other is not fold],
            "validation": list(local.shards["validation"]),
            "test": [fold],
        }
        directory = folder / f"dataset-{number}"
        directory.mkdir()
        for split, shards in own.items():
            source = pathlib.Path(local.directory) if split == "validation" else folder
            for shard in shards:
                os.symlink(os.path.abspath(source / shard.name), directory / shard.name)
        storage.write_json(directory / dataset.METADATA_FILE, _metadata(content, own, f"{num_folds}:{number}"))
        made.append(str(directory))
    return made


def _metadata(content: dict[str, Any], shards: dict[str, list[StoredShard]], name: str) -> dict[str, Any]:
    return content | {
        "fingerprint": hashlib.sha256(f"{content['fingerprint']}:{name}".encode()).hexdigest(),
        "num_examples": {split: sum(shard.num_records for shard in found) for split, found in shards.items()},
        "shards": {split: [dataclasses.asdict(shard) for shard in found] for split, found in shards.items()},
    }


def _shards(local: Dataset, folder: pathlib.Path, num_folds: int) -> list[StoredShard]:
    """Write the records of each fold into one file."""
    from array_record.python.array_record_module import ArrayRecordWriter

    paths = [folder / f"fold-{number}.array_record" for number in range(num_folds)]
    counts = [0] * num_folds
    with contextlib.ExitStack() as stack, local.open_shards("train") as records:
        writers = [ArrayRecordWriter(str(path), "group_size:1,uncompressed") for path in paths]
        for writer in writers:
            stack.callback(writer.close)
        for start in range(0, local.num_examples["train"], _CHUNK):
            for record in records.read(range(start, min(start + _CHUNK, local.num_examples["train"]))):
                # The last digits, because the first ones decide the shard.
                number = int(parse(record).figures.content_hash[-8:], 16) % num_folds
                writers[number].write(record)
                counts[number] += 1
    return [_shard(path, count) for path, count in zip(paths, counts, strict=True)]


def _shard(path: pathlib.Path, num_records: int) -> StoredShard:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # Prefix and digest are only for reuse by `prepare`, which never gets this dataset.
    size = path.stat().st_size
    return StoredShard(
        name=path.name,
        prefix="",
        num_records=num_records,
        num_bytes=size,
        digest=digest,
        sha256=digest,
        crc32c=bucket.crc32c(str(path)),
    )
