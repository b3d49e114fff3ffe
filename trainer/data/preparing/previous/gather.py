"""Collects the rows of all images: known ones from the previous dataset and from parts, the others are read."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator

from exact_resume.files.overlap import batched, in_groups
from trainer.data.preparing import parts
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.parts import DamagedPart
from trainer.data.preparing.previous.dataset import NoPreviousDataset
from trainer.data.preparing.previous.rows import PreviousRows
from trainer.data.preparing.rows import Rows
from trainer.data.sources.source import Identity, SourceImage
from trainer.files.progress import Progress

_NUM_THREADS = 16
_GROUP = 16
"""Number of images whose identities are looked up together."""
_BATCH_SIZE = 256
"""Number of images whose rows are looked up together."""


def gather(
    images: Iterable[SourceImage],
    image_size: int,
    engine: Engine,
    rows: Rows,
    previous: NoPreviousDataset,
    *,
    is_trusted: bool,
    parts_folder: str,
    progress: Progress,
) -> int:
    """Add a row for each image, and return how many images were read.

    Args:
        images: All of the source, not read yet.
        image_size: Height and width of the prepared images in pixels.
        engine: Reads the images that the previous dataset does not have.
        rows: Grow by one per image, and get the previous splits.
        previous: Images with the same name and identity are not read again.
        is_trusted: Whether that holds; otherwise nothing of the previous dataset is used except its splits.
        parts_folder: Where parts of an earlier attempt are found; empty for none.
        progress: Advances with the images.
    """
    previous_rows = PreviousRows(rows)
    if previous.entry:
        previous_rows.add_previous(previous.rows(), began_ns=previous.entry.began_ns, is_trusted=is_trusted)
    for name in parts.names(parts_folder) if parts_folder else ():
        # A killed attempt left a damaged one, or someone changed it: its images are read.
        with contextlib.suppress(DamagedPart):
            own, began_ns = engine.take_part(name)
            previous_rows.add_part(own, began_ns=began_ns)
    if parts_folder or (previous.entry and is_trusted):
        previous_rows.sort()
        images = _unknown(images, previous_rows, progress)
    num_read = 0
    for some in engine.read(images, image_size):
        rows.add(some)
        progress.advance(len(some))
        num_read += len(some)
    return num_read


def _unknown(images: Iterable[SourceImage], previous_rows: PreviousRows, progress: Progress) -> Iterator[SourceImage]:
    """Yield the images that have to be read, and add the rows of the others."""
    # One request per image, where a manifest names objects.
    identified = in_groups(_identity, images, group_size=_GROUP, num_threads=_NUM_THREADS)
    for some in batched(identified, _BATCH_SIZE):
        unknown = previous_rows.take(some)
        num_known = len(some) - len(unknown)
        progress.advance(num_known, num_known=num_known)
        for image, identity in unknown:
            yield dataclasses.replace(image, identity=functools.partial(dict, identity)) if identity else image


def _identity(image: SourceImage) -> Identity:
    """Return the identity of an image; empty if it cannot be looked at, which reading it finds again."""
    try:
        return image.identity()
    except OSError:
        return {}
