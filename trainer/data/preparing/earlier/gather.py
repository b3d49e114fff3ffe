"""Collects the rows of all images: known ones from the previous dataset and from parts, the others are read."""

import dataclasses
import functools
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import BinaryIO

from trainer.data.preparing import parts
from trainer.data.preparing.earlier.known import Known
from trainer.data.preparing.earlier.reuse import Nothing
from trainer.data.preparing.parts import DamagedPart
from trainer.data.preparing.read import examined
from trainer.data.preparing.rows import Rows
from trainer.data.sources.source import Identity, SourceImage
from trainer.files.overlap import in_order

_NUM_THREADS = 16
_GROUP = 8
"""Number of images whose identities are looked up together."""
_TOGETHER = 512
"""Number of known rows that are stored together."""


def gather(
    images: Iterable[SourceImage],
    image_size: int,
    prepared: BinaryIO,
    rows: Rows,
    previous: Nothing,
    *,
    is_trusted: bool,
    parts_folder: str,
) -> int:
    """Add a row for each image, and return how many images were read.

    Args:
        images: All of the source, not read yet.
        image_size: Height and width of the prepared images in pixels.
        prepared: A file that grows by the prepared images that the previous dataset does not have.
        rows: Grow by one per image, and get the previous splits.
        previous: Images with the same name and identity are not read again.
        is_trusted: Whether that holds; otherwise nothing of the previous dataset is used except its splits.
        parts_folder: Where parts are found and made; empty for none.
    """
    with closing(Known()) as known:
        if previous.entry:
            known.add_previous(previous.rows(), began_ns=previous.entry.began_ns, is_trusted=is_trusted)
            rows.set_previous_splits(known.splits())
        if parts_folder:
            _add_parts(known, parts_folder, prepared)
            unknown = _unknown(images, known, rows)
            found = parts.make_all(unknown, image_size, prepared, parts_folder)
        else:
            found = examined(images, image_size, prepared)
        num_read = 0
        for some in found:
            rows.add(some)
            num_read += len(some)
    return num_read


def _add_parts(known: Known, folder: str, prepared: BinaryIO) -> None:
    """Add the rows of all parts, and their prepared images to the file."""
    for name in parts.names(folder):
        start = prepared.seek(0, os.SEEK_END)
        try:
            part = parts.describe(folder, name)
            with parts.open_bytes(folder, name) as file:
                shutil.copyfileobj(file, prepared)
            own = [dataclasses.replace(row, offset=row.offset + start) for row in parts.read(folder, name)]
        except DamagedPart:
            # A killed attempt left it, or someone changed it: its images are read.
            continue
        known.add_part(own, began_ns=part.began_ns)


def _unknown(images: Iterable[SourceImage], known: Known, rows: Rows) -> Iterator[SourceImage]:
    """Yield the images that have to be read, and add rows for the others."""
    found = []
    for image, identity in _identified(images):
        if row := known.find(image, identity):
            found.append(row)
        else:
            yield dataclasses.replace(image, identity=functools.partial(dict, identity)) if identity else image
        if len(found) == _TOGETHER:
            rows.add(found)
            found.clear()
    rows.add(found)


def _identified(images: Iterable[SourceImage]) -> Iterator[tuple[SourceImage, Identity]]:
    """Yield each image with its identity; empty if it cannot be looked at, which reading it finds again."""
    remaining = iter(images)
    groups = iter(lambda: list(itertools.islice(remaining, _GROUP)), [])
    # One request per image, where a manifest names objects.
    for group, identities in in_order(
        lambda group: (group, [_identity(image) for image in group]), groups, num_threads=_NUM_THREADS
    ):
        yield from zip(group, identities, strict=True)


def _identity(image: SourceImage) -> Identity:
    try:
        return image.identity()
    except OSError:
        return {}
