"""Converts every mode that Pillow decodes to RGB of 8 bits; values without a known scale are refused."""

import numpy as np
import numpy.typing as npt
from PIL import Image

_UNIT_FLOATS = "images of floating point, read as 0 to 1"
_BYTE_FLOATS = "images of floating point, read as 0 to 255"
"""Remarks: the file does not state its scale."""
_LARGEST_16_BITS = 65535


class BadImage(Exception):
    """Bytes that are not an image, or an image that must not be decoded; the message gives the reason."""


def to_rgb(image: Image.Image, num_bits: int) -> tuple[Image.Image, str]:
    """Return an RGB image of 8 bits per channel, with transparency composited on white, and a remark or "".

    Args:
        image: Any mode.
        num_bits: Bits of grey of the modes that begin with I.

    Raises:
        BadImage: The values have no known scale, or would turn black.
    """
    remark = ""
    if image.mode.startswith("I"):
        image = _integers(np.asarray(image), num_bits)
    elif image.mode == "F":
        image, remark = _floats(np.asarray(image))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB"), remark
    # A JPEG has one frame, so nothing that is read later changes its pixels, and no copy is needed.
    return image if (image.mode, image.format) == ("RGB", "JPEG") else image.convert("RGB"), remark


def _integers(values: npt.NDArray[np.integer], num_bits: int) -> Image.Image:
    """Return the upper byte of 16-bit grey, as viewers do; Pillow would clip."""
    low, high, shift = int(values.min()), int(values.max()), num_bits - 8
    if low < 0 or high > _LARGEST_16_BITS:
        raise BadImage(f"its integers from {low} to {high} do not fit 16 bits of grey; convert it to 8 or 16 bits")
    if high and not high >> shift:
        raise BadImage(f"its largest value {high} of {num_bits} bits would be black; scale the values, or use 8 bits")
    return Image.fromarray((values.astype(np.uint32) >> shift).clip(0, 255).astype(np.uint8))


def _floats(values: npt.NDArray[np.floating]) -> tuple[Image.Image, str]:
    """Return floating point as grey: from 0 to 1, as in most files, or else from 0 to 255, as Pillow writes it."""
    low, high = float(values.min()), float(values.max())
    # Not a number compares as false.
    if not (low >= 0 and high <= 255):
        raise BadImage(f"its floating point values from {low:g} to {high:g} have no known scale; scale them to 0 to 1")
    if high <= 1:
        return Image.fromarray(np.rint(values * 255).astype(np.uint8)), _UNIT_FLOATS
    return Image.fromarray(values.astype(np.uint8)), _BYTE_FLOATS
