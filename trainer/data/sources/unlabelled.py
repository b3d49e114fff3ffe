"""Images without labels, for predictions: all images of a folder, or those that manifests name."""

import functools
import os
from collections.abc import Iterator

from localvertex_base.userinput import paths
from localvertex_base.userinput.errors import UserError
from trainer.data.sources import bucket, digits, folder, opening
from trainer.data.sources.layout import Listing
from trainer.data.sources.manifests import files
from trainer.data.sources.manifests.source import ManifestSource
from trainer.data.sources.source import Source, SourceImage
from trainer.data.sources.tfds import TfdsSource


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


def open_unlabelled(source: str, scratch_directory: str) -> Source:
    """Open a source whose images need no labels, classes or splits.

    Args:
        source: `digits`, `tfds:NAME`, a folder, or a manifest, local or gs://.
        scratch_directory: A folder for files that must be unpacked first; the caller removes it.

    Raises:
        UserError: The source does not exist or is empty.
    """
    if source == "digits":
        return _AllImages(folder.list_folder(digits.write(os.path.join(scratch_directory, "digits"))))
    if source.startswith("tfds:"):
        return TfdsSource(source.removeprefix("tfds:"))
    if not source.strip():
        raise UserError("source is empty; give a folder of images, a manifest, or tfds:NAME")
    paths.check("source", source, expected="a folder, a manifest, tfds:NAME, or gs://BUCKET/PATH")
    if files.is_named(source):
        return ManifestSource(source, files.find(source), is_labelled=False)
    listing = bucket.list_objects(source) if source.startswith("gs://") else folder.list_folder(source)
    found = _AllImages(listing)
    if not found.num_images and not found.unreadable:
        if manifests := files.find(source):
            return ManifestSource(source, manifests, is_labelled=False)
        remarks = "; ".join(listing.remarks.describe()) or "it has no files"
        raise UserError(f"no images in {paths.display(source)}: expected files such as .jpg or .png ({remarks})")
    return found
