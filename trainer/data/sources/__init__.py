"""Where images come from: `digits`, a folder with a sub-folder per class (here or on gs://), or `tfds:NAME`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from userinput.errors import UserError

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class SourceImage:
    """One image of a source, not read yet."""

    name: str
    """Unique within the source and stable: the path below the folder, or split and index."""
    label: int
    """Index into the source's class names."""
    split: str
    """One of `SPLITS` where the source has splits of its own; empty: prepare decides by content."""
    read: Callable[[], bytes]
    """Gives the encoded image; may raise OSError."""


class Source(Protocol):
    """A place with labelled images."""

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of the labels."""
        ...

    @property
    def num_ignored_files(self) -> int:
        """Files that were passed over because their names are not those of images."""
        ...

    def images(self) -> Iterator[SourceImage]:
        """All images, in the same order each time."""
        ...


def open_source(source: str, scratch_directory: str) -> Source:
    """The source that a user's word means.

    Args:
        source: `digits`, `tfds:NAME`, or a folder, local or gs://. A folder called digits is reached as `./digits`.
        scratch_directory: a folder for what has to be unpacked first; the caller removes it.

    Raises:
        UserError: no such source, nothing in it, or one class only.
    """
    if source == "digits":
        from trainer.data.sources import digits
        from trainer.data.sources.folder import FolderSource

        return FolderSource(digits.write(os.path.join(scratch_directory, "digits")))
    if source.startswith("tfds:"):
        from trainer.data.sources.tfds import TfdsSource

        return TfdsSource(source.removeprefix("tfds:"))
    if not source.strip():
        raise UserError("source is empty; give digits, a folder with one sub-folder per class, or tfds:NAME")
    # Vertex AI mounts all buckets there, in pipeline steps and in training jobs: reading ahead is the mount's strength.
    if source.startswith("gs://") and os.path.isdir(mounted := f"/gcs/{source.removeprefix('gs://')}"):
        source = mounted
    if source.startswith("gs://"):
        from trainer.data.sources.bucket import BucketSource

        return BucketSource(source)
    if "://" in source:
        raise UserError(
            f"source {source!r} is not a folder here; give digits, tfds:NAME, a folder, or gs://BUCKET/FOLDER"
        )
    from trainer.data.sources.folder import FolderSource

    return FolderSource(source)
