"""Opens a source by what the user wrote: `digits`, `tfds:NAME`, a folder or manifests, local or in a bucket."""

import functools
import os
from collections.abc import Iterator

from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.data.sources import bucket, digits, folder, opening
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.manifests import files
from trainer.data.sources.manifests.source import ManifestSource
from trainer.data.sources.source import Count, Source, SourceImage, ignore_count
from trainer.data.sources.tfds import TfdsSource


def open_source(
    source: str, scratch_directory: str, count: Count = ignore_count, *, is_labelled: bool = True
) -> Source:
    """Open a source.

    Args:
        source: `digits`, `tfds:NAME`, a folder, or a manifest, local or gs://. A folder called
            digits is written as `./digits`.
        scratch_directory: A folder for files that must be unpacked first; the caller removes it.
        count: Follows the listing.
        is_labelled: Whether the images are to train a model; otherwise they need no labels, classes or splits, and
            manifests of a folder count only if it has no images.

    Raises:
        UserError: The source does not exist, is empty, or has only one class.
    """
    if source.startswith("tfds:"):
        return TfdsSource(source.removeprefix("tfds:"))
    if not source.strip():
        raise UserError(
            "source is empty; give digits, a folder with one sub-folder per class, a manifest, or tfds:NAME"
        )
    if source == "digits":
        source = digits.write(os.path.join(scratch_directory, "digits"))
    paths.check("source", source, expected="digits, tfds:NAME, a folder, a manifest, or gs://BUCKET/PATH")
    found = files.find(source)
    if found and (is_labelled or files.is_named(source)):
        return ManifestSource(source, found, count, is_labelled=is_labelled)
    listing = (bucket.list_objects if source.startswith("gs://") else folder.list_folder)(source, count)
    if is_labelled:
        return ListedSource(listing)
    if listing.images or listing.unreadable:
        return _AllImages(listing)
    if found:
        return ManifestSource(source, found, count, is_labelled=False)
    remarks = "; ".join(listing.remarks.describe()) or "it has no files"
    raise UserError(f"no images in {paths.display(source)}: expected files such as .jpg or .png ({remarks})")


class _AllImages:
    """Every image of a listing, whatever its folder."""

    def __init__(self, listing: Listing) -> None:
        self.class_names: list[str] = []
        self.remarks, self.unreadable = listing.remarks, listing.unreadable
        self.num_images, self._listed = len(listing.images), listing.images

    def images(self) -> Iterator[SourceImage]:
        for name, location, _ in self._listed:
            yield SourceImage(
                name=name, label=0, split="", read=functools.partial(opening.read, location), location=location
            )
