"""Writes the files of a prepared dataset: shards, the list of images, TensorFlow Datasets' metadata, dataset.json."""

import dataclasses
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from exact_resume.files import storage
from exact_resume.files.overlap import batched
from localvertex._base.userinput.errors import UserError
from trainer.data import dataset, images
from trainer.data.preparing import image_list, shards
from trainer.data.preparing.engines.factory import Engine
from trainer.data.preparing.previous.dataset import NoPreviousDataset
from trainer.data.preparing.quality import near_duplicates, rejected
from trainer.data.preparing.rows import Row, RowBytes, Rows
from trainer.data.preparing.shards import PlannedShard
from trainer.data.preparing.statistics import Statistics
from trainer.data.splits import SPLITS
from trainer.data.stored import records
from trainer.data.stored.metadata import NAME, StoredShard
from trainer.files.progress import Progress

_BATCH_SIZE = 256
"""Number of records that are read at a time."""


OWN = re.compile(
    rf"{NAME}-[a-z]+\.array_record-\d+-of-\d+|(?:dataset|dataset_info|features)\.json|label\.labels\.txt"
    rf"|{re.escape(image_list.FILE)}|{re.escape(rejected.FILE)}|{re.escape(near_duplicates.FILE)}"
)
"""The names of all files of a dataset."""


class Prepared:
    """The prepared images of all rows: in the previous dataset, or of this attempt."""

    def __init__(self, engine: Engine, previous: NoPreviousDataset) -> None:
        """Keep both."""
        self.engine = engine
        self.previous = previous

    def records(self, rows: Iterable[Row]) -> Iterator[RowBytes]:
        """Yield each row with its record as it is to be stored."""
        for some in batched(rows, _BATCH_SIZE):
            old = self.previous.records([row for row in some if row.origin])
            new = shards.serialize_rows(self.engine.images(row for row in some if not row.origin))
            for row in some:
                if not row.origin:
                    yield next(new)
                elif row.label == row.stored_label:
                    # The name is the same, or the row would have no origin, and the rest follows from the content.
                    yield row, next(old)
                else:
                    yield from shards.serialize_rows([(row, records.image_of(next(old)))])


def write(
    directory: storage.Path,
    rows: Rows,
    prepared: Prepared,
    progress: Progress,
    *,
    statistics: Statistics,
    quality: dict[str, Any],
    image_size: int,
    source: str,
) -> None:
    """Write all files except the list of images into a folder that the caller publishes afterwards.

    Args:
        directory: A folder.
        rows: All images, with their splits.
        prepared: The prepared images.
        progress: Counts the images of finished shards.
        statistics: Statistics of all rows.
        quality: The warnings about the images, ready for JSON.
        image_size: Height and width in pixels.
        source: As the user wrote it; recorded for information, not part of the fingerprint.

    Raises:
        UserError: TensorFlow Datasets' metadata cannot contain a class name.
        Unusable: The previous dataset was changed.
    """
    class_names = statistics.class_names
    digest = hashlib.sha256(json.dumps([dataset.FORMAT_VERSION, image_size, class_names]).encode())
    planned = {split: shards.plan(split, rows) for split in SPLITS}
    found: dict[str, StoredShard] = {}
    every = ((shard, _count(shard, rows, digest.update)) for shard in itertools.chain(*planned.values()))
    for stored in prepared.engine.write_shards(directory, every, prepared.records):
        found[stored.name] = stored
        progress.advance(stored.num_records)
    written = {split: [found[shard.name] for shard in planned[split]] for split in SPLITS}
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
            "statistics": statistics.to_dict(rows.split_counts(), *rows.num_contents(), image_size)
            | {"quality": quality},
        },
    )


def _count(shard: PlannedShard, rows: Rows, add: Callable[[bytes], None]) -> Iterator[Row]:
    """Yield the rows of a shard, and add them to the digest of the dataset."""
    for row in shard.rows(rows):
        add(shard.split.encode() + b":" + shards.distinct(row))
        yield row


def _write_tfds_metadata(
    directory: storage.Path, class_names: list[str], image_size: int, written: dict[str, list[StoredShard]]
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
