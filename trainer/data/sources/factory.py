"""Opens a source by what the user wrote: `digits`, `tfds:NAME`, a folder or manifests, local or in a bucket."""

import os

from localvertex_base.userinput import paths
from localvertex_base.userinput.errors import UserError
from trainer.data.sources import digits
from trainer.data.sources.bucket import BucketSource
from trainer.data.sources.folder import FolderSource
from trainer.data.sources.manifests import files
from trainer.data.sources.manifests.source import ManifestSource
from trainer.data.sources.source import Count, Source, ignore_count
from trainer.data.sources.tfds import TfdsSource


def open_source(source: str, scratch_directory: str, count: Count = ignore_count) -> Source:
    """Open a source.

    Args:
        source: `digits`, `tfds:NAME`, a folder, or a manifest, local or gs://. A folder called
            digits is written as `./digits`.
        scratch_directory: A folder for files that must be unpacked first; the caller removes it.
        count: Follows the listing.

    Raises:
        UserError: The source does not exist, is empty, or has only one class.
    """
    if source == "digits":
        return FolderSource(digits.write(os.path.join(scratch_directory, "digits")))
    if source.startswith("tfds:"):
        return TfdsSource(source.removeprefix("tfds:"))
    if not source.strip():
        raise UserError(
            "source is empty; give digits, a folder with one sub-folder per class, a manifest, or tfds:NAME"
        )
    paths.check("source", source, expected="digits, tfds:NAME, a folder, a manifest, or gs://BUCKET/PATH")
    if found := files.find(source):
        return ManifestSource(source, found, count)
    if source.startswith("gs://"):
        return BucketSource(source, count)
    return FolderSource(source, count)
