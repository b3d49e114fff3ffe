"""Opens a source by what the user wrote: `digits`, `tfds:NAME`, a folder or manifests, local or in a bucket."""

import functools
import os
from collections.abc import Iterator

import numpy as np
from PIL import Image

from exact_resume.files import bucket
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.data.sources import folder, layout, opening
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.manifests import files
from trainer.data.sources.manifests.source import ManifestSource
from trainer.data.sources.remarks import SYSTEM
from trainer.data.sources.source import Count, Source, SourceImage, ignore_count
from trainer.data.sources.tfds import TfdsSource

_BRIGHTEST = 16
"""The digits are 8x8 counts from 0 to 16 (UCI optical recognition of handwritten digits)."""


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
        source = write_digits(os.path.join(scratch_directory, "digits"))
    paths.check("source", source, expected="digits, tfds:NAME, a folder, a manifest, or gs://BUCKET/PATH")
    found = files.find(source)
    if found and (is_labelled or files.is_named(source)):
        return ManifestSource(source, found, count, is_labelled=is_labelled)
    listing = (list_objects if source.startswith("gs://") else folder.list_folder)(source, count)
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


def list_objects(directory: str, count: Count = ignore_count) -> Listing:
    """Return the objects below a prefix, without system files. A folder without an object does not exist.

    Args:
        directory: Address of the folder.
        count: Follows the listing.

    Raises:
        UserError: The folder is empty.
        OSError: The bucket does not exist or is not readable.
    """
    path = directory.rstrip("/")
    listing = Listing(path)
    of_system: set[str] = set()
    num_objects = 0
    for name, identity in bucket.identities(path):
        num_objects += 1
        count(1)
        parts = name.rstrip("/").split("/")
        hidden = next((number for number, part in enumerate(parts) if layout.is_system_name(part)), len(parts))
        folders = ["/".join(parts[:number]) for number in range(1, min(hidden + 1, len(parts)))]
        listing.folders.update(folders)
        if hidden < len(parts):
            if (prefix := "/".join(parts[: hidden + 1])) not in of_system:
                listing.remarks.add(SYSTEM, prefix)
            of_system.add(prefix)
        elif not name.endswith("/"):
            listing.add_file(name, f"{path}/{name}", identity)
    if not num_objects:
        raise UserError(f"source {directory!r} not found: no object name starts with {path}/; check the path")
    return listing


def write_digits(directory: str) -> str:
    """Write all 1797 digits as 8x8 grey PNG files: `<folder>/<digit>/<index>.png`.

    Returns:
        The folder.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    for index, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        folder = os.path.join(directory, str(label))
        os.makedirs(folder, exist_ok=True)
        grey = np.rint(pixels * (255 / _BRIGHTEST)).astype(np.uint8)
        Image.fromarray(grey).save(os.path.join(folder, f"{index:04d}.png"))
    return directory
