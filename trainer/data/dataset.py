"""The prepared dataset: the names of its files, and reading it back. Needs no TensorFlow.

A dataset is a folder with ArrayRecord shards, TensorFlow Datasets' metadata and `dataset.json`.
`tfds.builder_from_directory(folder).as_data_source(split)` reads it too.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from exact_resume.files import storage
from exact_resume.files.overlap import batched
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.data.splits import SPLITS
from trainer.data.stored.metadata import StoredShard, check_metadata
from trainer.data.stored.records import Record, parse
from trainer.data.stored.shards import Shards

METADATA_FILE = "dataset.json"
FORMAT_VERSION = 2
_CHUNK = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset:
    """A prepared dataset; its records are read on demand."""

    directory: str
    class_names: tuple[str, ...]
    image_size: int
    """Height and width of every image in pixels."""
    fingerprint: str
    """SHA-256 of the records' originals, images, labels and splits, and the class names."""
    num_examples: dict[str, int]
    """Examples in train, validation and test."""
    shards: dict[str, tuple[StoredShard, ...]]
    """Each split's shards, in the order of the content hashes."""
    statistics: dict[str, Any]
    """Counts per class and split, mean and standard deviation, sizes of the originals, bad files."""

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)

    def counts(self, split: str) -> list[int]:
        """Return the number of a split's images per class, in the order of the class names."""
        return [self.statistics["counts"][name][split] for name in self.class_names]

    def constant_answer(self, split: str) -> tuple[str, float]:
        """Return the most frequent class of the training split, and the accuracy on a split of always answering it."""
        train, asked = self.counts("train"), self.counts(split)
        frequent = train.index(max(train))
        return self.class_names[frequent], asked[frequent] / max(1, sum(asked))

    def shard_paths(self, split: str) -> list[str]:
        """Return the paths of a split's shards, in order.

        Raises:
            UserError: A shard is missing on this machine; in a bucket, nothing is checked.
        """
        paths = [os.path.join(self.directory, shard.name) for shard in self.shards[split]]
        for path in paths:
            if "://" not in path and not os.path.exists(path):
                raise _missing_shard(path, self.directory)
        return paths

    def shard_sizes(self, split: str) -> dict[str, int]:
        """Return the path of each shard of a split -> its size in bytes.

        Raises:
            UserError: A shard is missing.
        """
        sizes = {}
        for path in self.shard_paths(split):
            try:
                sizes[path] = storage.size(path)
            except FileNotFoundError as error:
                raise _missing_shard(path, self.directory) from error
        return sizes

    def records(self, split: str, indices: list[int] | None = None) -> Iterator[Record]:
        """Yield the records of a split at the given indices, or all of them in the stored order.

        The shards must be on this machine: `trainer.data.staging.stage` copies those of a bucket.

        Raises:
            UserError: A shard is missing.
        """
        if not self.shards[split]:
            return
        if indices is not None:
            with self.open_shards(split) as shards:
                yield from _read(shards, indices)
            return
        # One by one, because each open shard has an index of all its records in memory.
        for path, shard in zip(self.shard_paths(split), self.shards[split], strict=True):
            with Shards([path], shard.num_records) as shards:
                yield from _read(shards, range(shard.num_records))

    def open_shards(self, split: str) -> Shards:
        """Open the shards of a split, which must be on this machine.

        Raises:
            UserError: A shard is missing, or is not an ArrayRecord file.
        """
        return Shards(self.shard_paths(split), self.num_examples[split])

    def check_shards(self, *wanted: str) -> None:
        """Open the shards of some splits and close them; in a bucket, nothing is checked.

        Raises:
            UserError: A shard is missing, or is not an ArrayRecord file.
        """
        if not storage.is_object_store(self.directory):
            for split in filter(self.shards.get, wanted):
                with self.open_shards(split):
                    pass


def load(directory: str) -> Dataset:
    """Open a prepared dataset.

    Raises:
        UserError: The folder is not a dataset that `prepare` made, or one of another format version.
    """
    path = storage.join(directory, METADATA_FILE)
    content = storage.read_json(path)
    if content is None and not storage.exists(path):
        raise UserError(
            f"no prepared dataset at {directory!r}: {METADATA_FILE} not found (current folder: {os.getcwd()});"
            " make one with `python -m trainer.prepare`"
        )
    check_metadata(content, path, format_version=FORMAT_VERSION)
    if unnamed := sorted({*content["class_names"]} ^ {*content["statistics"]["counts"]}):
        raise UserError(
            f"{path!r}: class {quote(unnamed[0])} is in only one of class_names and statistics; run prepare again"
        )
    names = [each.name for each in dataclasses.fields(StoredShard)]
    return Dataset(
        directory=directory,
        class_names=tuple(content["class_names"]),
        image_size=content["image_size"],
        fingerprint=content["fingerprint"],
        num_examples={split: content["num_examples"][split] for split in SPLITS},
        shards={
            split: tuple(StoredShard(**{name: shard[name] for name in names}) for shard in content["shards"][split])
            for split in SPLITS
        },
        statistics=content["statistics"],
    )


def _read(shards: Shards, wanted: Sequence[int]) -> Iterator[Record]:
    for some in batched(wanted, _CHUNK):
        yield from map(parse, shards.read(some))


def _missing_shard(path: str, directory: str) -> UserError:
    """Return the error for a dataset that lacks one of its shards."""
    return UserError(f"shard {path} is missing: {directory} is incomplete; run prepare again")
