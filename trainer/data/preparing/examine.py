"""Examines one image: computes the prepared bytes and all figures, by the same function in every engine."""

import dataclasses
import hashlib

import numpy as np

from trainer.data import images
from trainer.data.preparing.quality import signatures
from trainer.data.preparing.quality.channels import channels_of
from trainer.data.stored.records import Figures

_LEVELS = np.arange(256, dtype=np.int64)
_WEIGHTS = np.stack([np.ones_like(_LEVELS), _LEVELS, _LEVELS * _LEVELS], axis=1)
"""Powers 0, 1 and 2 of each level: their products with a histogram are the count, sum and sum of squares."""


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
    """What is not used of the file."""


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
