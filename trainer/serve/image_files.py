"""Image files for the signature that is served: checked by header, converted where TensorFlow cannot decode."""

import io
import threading
from dataclasses import dataclass

from PIL import Image

from trainer.data import images
from trainer.data.modes import BadImage

MAX_PIXELS = 2**26
"""Larger images are refused: decoding one takes up to 20 bytes of memory per pixel."""
_FORMATS = ("JPEG", "MPO", "PNG", "BMP")
_MODES = ("RGB", "L", "RGBA", "LA", "1")
"""Format and mode, as Pillow names them, of files that TensorFlow decodes to the pixels that prepare makes of them."""
_conversions = threading.BoundedSemaphore(2)
"""Each may take a gigabyte."""


@dataclass(frozen=True, kw_only=True)
class ImageFile:
    """A file that TensorFlow can decode, unless it is damaged behind its header."""

    data: bytes
    num_pixels: int


def check(data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageFile:
    """Return the file where TensorFlow can decode it, otherwise (TIFF, CMYK, 16-bit grey ...) its pixels as PNG.

    Raises:
        BadImage: It is not an image, or it has too many pixels.
    """
    try:
        with Image.open(io.BytesIO(data)) as header:
            width, height = header.size
            kind = header.format, header.mode
            is_servable = header.format in _FORMATS and header.mode in _MODES and kind != ("BMP", "1")
    # Pillow's decoders raise almost anything for damaged files, of which `decode` knows the reasons.
    except Exception:
        width = height = 0
        is_servable = False
    if width * height > max_pixels:
        raise BadImage(f"{width}x{height} is more than {max_pixels:,} pixels; send a smaller image")
    if is_servable:
        return ImageFile(data=data, num_pixels=width * height)
    buffer = io.BytesIO()
    with _conversions:
        decoded = images.decode(data)
        decoded.save(buffer, "PNG", compress_level=1)
    return ImageFile(data=buffer.getvalue(), num_pixels=decoded.width * decoded.height)
