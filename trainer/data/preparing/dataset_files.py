"""Writes the files of a prepared dataset: shards, the list of images, TensorFlow Datasets' metadata, dataset.json."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Protocol

from trainer.data import dataset, images
from trainer.data.preparing import shards
from trainer.data.preparing.earlier.reuse import Prepared, Unusable
from trainer.data.preparing.rows import Row, Rows
from trainer.data.preparing.shards import Shard
from trainer.data.preparing.statistics import Statistics
from trainer.data.splits import SPLITS
from trainer.data.stored import records
from trainer.data.stored.metadata import NAME, StoredShard
from trainer.files import storage
from vertex_gpu_training.userinput.errors import UserError


class Digest(Protocol):
    """What hashlib returns."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""


def write(
    directory: os.PathLike[str], rows: Rows, prepared: Prepared, *, statistics: Statistics, image_size: int, source: str
) -> None:
    """Write all files except the list of images into a folder that the caller publishes afterwards.

    Args:
        directory: A folder.
        rows: All images, with their splits.
        prepared: The images.
        statistics: Of all rows.
        image_size: Height and width in pixels.
        source: As the user wrote it; recorded for information, not part of the fingerprint.

    Raises:
        UserError: TensorFlow Datasets' metadata cannot hold a class name.
        Unusable: The previous dataset was changed.
    """
    class_names = statistics.class_names
    digest = hashlib.sha256(json.dumps([dataset.FORMAT_VERSION, image_size, class_names]).encode())
    written = {
        split: [_shard(directory, shard, rows, prepared, digest) for shard in shards.plan(split, rows)]
        for split in SPLITS
    }
    _write_tfds_metadata(directory, class_names, image_size, written)
    storage.write_json(
        os.path.join(directory, dataset.METADATA_FILE),
        {
            "format_version": dataset.FORMAT_VERSION,
            "fingerprint": digest.hexdigest(),
            "class_names": class_names,
            "image_size": image_size,
            "num_examples": {split: sum(shard.num_records for shard in found) for split, found in written.items()},
            "shards": {split: [dataclasses.asdict(shard) for shard in found] for split, found in written.items()},
            "source": source,
            "statistics": statistics.to_dict(rows.split_counts(), *rows.num_contents(), image_size),
        },
    )


def _shard(directory: os.PathLike[str], shard: Shard, rows: Rows, prepared: Prepared, digest: Digest) -> StoredShard:
    counted = _counted(shard.split, shard.rows(rows), digest)
    if not (reused := prepared.previous.shard(shard, rows, directory)):
        return shards.write(directory, shard, prepared.images(counted))
    own = hashlib.sha256()
    for row in counted:
        own.update(shards.distinct(row))
    if own.hexdigest() != reused.digest:
        raise Unusable(f"{shard.name} has other records than the list of images")
    return reused


def _counted(split: str, rows: Iterable[Row], digest: Digest) -> Iterator[Row]:
    """Yield the rows, and add them to the digest of the dataset."""
    for row in rows:
        digest.update(split.encode() + b":" + shards.distinct(row))
        yield row


def _write_tfds_metadata(
    directory: os.PathLike[str], class_names: list[str], image_size: int, written: dict[str, list[StoredShard]]
) -> None:
    import tensorflow_datasets as tfds

    try:
        features = records.features(class_names, image_size, images.encoding_format(image_size))
    except ValueError as error:
        raise UserError(f"class names cannot be stored ({error}); rename the classes") from error
    template = tfds.core.ShardedFileTemplate(
        data_dir=directory, dataset_name=NAME, split="train", filetype_suffix="array_record"
    )
    tfds.folder_dataset.write_metadata(
        data_dir=directory,
        features=features,
        split_infos=[
            tfds.core.SplitInfo(
                name=split,
                shard_lengths=[shard.num_records for shard in found],
                num_bytes=sum(shard.num_bytes for shard in found),
                filename_template=template.replace(split=split),
            )
            for split, found in written.items()
        ],
        version="1.0.0",
        check_data=False,
        supervised_keys=("image", "label"),
    )
