"""Reads and examines images on all cores of this machine."""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from exact_resume.files.overlap import batched, in_groups
from trainer.data import images
from trainer.data.preparing.quality import signatures
from trainer.data.preparing.quality.kinds import channels_of
from trainer.data.preparing.rows import Row
from trainer.data.sources.source import Identity, SourceImage
from trainer.data.stored.records import Figures

_LEVELS = np.arange(256, dtype=np.int64)
_WEIGHTS = np.stack([np.ones_like(_LEVELS), _LEVELS, _LEVELS * _LEVELS], axis=1)
"""Powers 0, 1 and 2 of each level: their products with a histogram are the count, sum and sum of squares."""


_IN_FLIGHT = 512
"""Number of images that are read ahead, which bounds the memory."""
_GROUP = 8
"""Number of images in one task: handing one over takes as long as decoding a tenth of a small image."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Examined:
    """A usable image."""

    stored: bytes
    """The prepared image, PNG or JPEG."""
    stored_hash: str
    """SHA-256 of the prepared image."""
    figures: Figures
    appearance: str
    """See `signatures.appearance_of`."""
    remarks: tuple[str, ...]
    """Parts of the file that are not used."""


def examine(data: bytes, image_size: int) -> Examined | str:
    """Decode, resize, encode and measure an image.

    The result depends only on the arguments and on Pillow.

    Args:
        data: The encoded original.
        image_size: Height and width of the prepared image in pixels.

    Returns:
        The prepared image and its figures; for a bad image the reason, on one line.
    """
    try:
        decoded, remarks = images.decode_with_remarks(data)
    except images.BadImage as error:
        return " ".join(str(error).split())
    prepared = images.stretch(decoded, image_size)
    # Integers below 2**53 even for the largest image, so the sums are exact.
    counts = np.array(prepared.histogram(), dtype=np.int64).reshape(3, 256)
    _, sums, squares = (counts @ _WEIGHTS).T.tolist()
    stored = images.stored_form(data, prepared)
    return Examined(
        stored=stored,
        stored_hash=hashlib.sha256(stored).hexdigest(),
        figures=Figures(
            content_hash=hashlib.sha256(data).hexdigest(),
            perceptual_hash=signatures.hash_of(prepared),
            width=decoded.width,
            height=decoded.height,
            num_bytes=len(data),
            pixel_sums=tuple(sums),
            pixel_sums_of_squares=tuple(squares),
        ),
        appearance=signatures.appearance_of(prepared, channels_of(sums, squares, image_size**2)),
        remarks=tuple(remarks),
    )


def examine_images(source_images: Iterable[SourceImage], image_size: int, prepared: BinaryIO) -> Iterator[list[Row]]:
    """Yield a row for each image, several at a time, in the order of the images.

    Args:
        source_images: Not read yet.
        image_size: Height and width of the prepared images in pixels.
        prepared: A file that grows by the prepared images; a list of rows is yielded after its images are written.
    """
    offset = prepared.seek(0, os.SEEK_END)
    # Threads are enough, because Pillow's decoders and filters release the interpreter's lock. With a bucket they wait.
    found = in_groups(
        lambda image: _read_one(image, image_size),
        source_images,
        group_size=_GROUP,
        num_threads=max(16, os.cpu_count() or 1),
    )
    for chunk in batched(found, _IN_FLIGHT):
        added = []
        for image, (identity, outcome) in chunk:
            added.append(_row(image, identity, outcome, offset))
            offset += added[-1].num_stored_bytes
        # Few calls, because each gives the interpreter's lock to the threads and waits for its return.
        prepared.write(b"".join(outcome.stored for _, (_, outcome) in chunk if isinstance(outcome, Examined)))
        yield added


def _read_one(image: SourceImage, image_size: int) -> tuple[Identity, Examined | str]:
    try:
        identity = image.identity()
        data = image.read()
    except OSError as error:
        # Without an identity, because the next attempt may be able to read it.
        return {}, " ".join(str(error).split())
    return identity, examine(data, image_size)


def _row(image: SourceImage, identity: Identity, outcome: Examined | str, offset: int) -> Row:
    known: dict[str, Any] = {"name": image.name, "label": image.label, "split": image.split, "identity": identity}
    if isinstance(outcome, str):
        return Row.of(**known, reason=outcome)
    return Row.of(
        **known,
        remarks=outcome.remarks,
        figures=outcome.figures,
        appearance=outcome.appearance,
        stored_hash=outcome.stored_hash,
        offset=offset,
        num_stored_bytes=len(outcome.stored),
    )
