"""Writes the files of a prepared dataset: shards, TensorFlow Datasets' metadata and dataset.json."""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from typing import BinaryIO

from trainer.data import dataset, images
from trainer.data.splits import SPLITS
from trainer.data.statistics import Statistics
from trainer.files import storage
from vertex_gpu_training.userinput.errors import UserError

SHARD_BYTES = 256 * 2**20
"""A shard is closed when it reaches this size: large enough to read fast, small enough to copy in parallel."""
Spill = BinaryIO
"""Temporary file with the prepared images in the source's order; only their offsets are kept in memory."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """One resized image in the spill file."""

    name: str
    label: int
    split: str
    """The split that the source assigned, or empty."""
    content_hash: str
    """SHA-256 of the encoded original."""
    stored_hash: str
    """SHA-256 of the prepared image as stored."""
    offset: int
    """Position in the spill file, in bytes."""
    num_bytes: int


def write(
    directory: os.PathLike[str],
    prepared: Sequence[Prepared],
    assigned: dict[str, str],
    spill: Spill,
    *,
    statistics: Statistics,
    image_size: int,
    source: str,
) -> None:
    """Write all files into a folder that the caller publishes afterwards.

    Args:
        directory: An empty folder.
        prepared: The images, in any order.
        assigned: Content hash -> split.
        spill: The file with the bytes of the images.
        statistics: Of all images; the counts per class and split are added here.
        image_size: Height and width in pixels.
        source: As the user wrote it; recorded for information, not part of the fingerprint.

    Raises:
        UserError: TensorFlow Datasets' metadata cannot hold a class name.
    """
    digest = hashlib.sha256(json.dumps([dataset.FORMAT_VERSION, image_size, statistics.class_names]).encode())
    shards: dict[str, list[str]] = {}
    num_examples: dict[str, int] = {}
    for split in SPLITS:
        # By content and label, never by file name: renamed files give the same dataset.
        rows = sorted(
            (p for p in prepared if assigned[p.content_hash] == split), key=lambda p: (p.stored_hash, p.label, p.name)
        )
        for row in rows:
            digest.update(f"{split}:{row.label}:{row.stored_hash};".encode())
            statistics.count(split, row.label)
        shards[split] = _write_shards(directory, split, rows, spill)
        num_examples[split] = len(rows)
    _write_tfds_metadata(directory, statistics.class_names, image_size, shards)
    storage.write_json(
        os.path.join(directory, dataset.METADATA_FILE),
        {
            "format_version": dataset.FORMAT_VERSION,
            "fingerprint": digest.hexdigest(),
            "class_names": statistics.class_names,
            "image_size": image_size,
            "num_examples": num_examples,
            "shards": shards,
            "source": source,
            "statistics": {**statistics.to_dict(), **_repeats(prepared)},
        },
    )


def _repeats(prepared: Sequence[Prepared]) -> dict[str, int]:
    labels: dict[str, set[int]] = {}
    for row in prepared:
        labels.setdefault(row.content_hash, set()).add(row.label)
    return {
        "num_repeated_images": len(prepared) - len(labels),
        "num_images_under_several_classes": sum(len(found) > 1 for found in labels.values()),
    }


def _write_shards(directory: os.PathLike[str], split: str, rows: Sequence[Prepared], spill: Spill) -> list[str]:
    from array_record.python.array_record_module import ArrayRecordWriter

    cuts, size = [0], 0
    for index, row in enumerate(rows):
        if size and size + row.num_bytes > SHARD_BYTES:
            cuts.append(index)
            size = 0
        size += row.num_bytes
    cuts.append(len(rows))
    names = []
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        name = f"{dataset.NAME}-{split}.array_record-{number:05d}-of-{len(cuts) - 1:05d}"
        # One record per group, because records are read one by one in random order. Images are compressed already.
        writer = ArrayRecordWriter(os.path.join(directory, name), "group_size:1,uncompressed")
        for row in rows[start:end]:
            spill.seek(row.offset)
            record = dataset.Record(image_bytes=spill.read(row.num_bytes), label=row.label, file_name=row.name)
            writer.write(dataset.serialize(record))
        writer.close()
        names.append(name)
    return names


def _write_tfds_metadata(
    directory: os.PathLike[str], class_names: list[str], image_size: int, shards: dict[str, list[str]]
) -> None:
    import tensorflow_datasets as tfds

    try:
        labels = tfds.features.ClassLabel(names=class_names)
    except ValueError as error:
        raise UserError(f"class names cannot be stored ({error}); rename the classes") from error
    encoding = images.encoding_format(image_size)
    tfds.folder_dataset.write_metadata(
        data_dir=directory,
        features=tfds.features.FeaturesDict(
            {
                "image": tfds.features.Image(shape=(image_size, image_size, 3), encoding_format=encoding),
                "label": labels,
                "file_name": tfds.features.Text(),
            }
        ),
        split_infos=_split_infos(directory, shards),
        version="1.0.0",
        check_data=False,
        supervised_keys=("image", "label"),
    )


def _split_infos(directory: os.PathLike[str], shards: dict[str, list[str]]) -> list[object]:
    import tensorflow_datasets as tfds
    from array_record.python.array_record_module import ArrayRecordReader

    template = tfds.core.ShardedFileTemplate(
        data_dir=directory, dataset_name=dataset.NAME, split="train", filetype_suffix="array_record"
    )
    infos: list[object] = []
    for split, names in shards.items():
        paths = [os.path.join(directory, name) for name in names]
        infos.append(
            tfds.core.SplitInfo(
                name=split,
                shard_lengths=[ArrayRecordReader(path).num_records() for path in paths],
                num_bytes=sum(os.path.getsize(path) for path in paths),
                filename_template=template.replace(split=split),
            )
        )
    return infos
