"""Decodes any image file to uint8 RGB of a fixed size. trainer.results.serving does the same in TensorFlow."""

import io
import warnings

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

_MAX_PIXELS = 178_956_970
"""Larger images are refused as bad: a small file may unpack to many gigabytes (Pillow's own hard limit)."""
EXTENSIONS = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".jfif", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"}
)
"""Endings of file names that count as images, in lower case."""
_LARGEST_LOSSLESS_SIZE = 64
"""Largest edge in pixels that is stored as PNG; above it, JPEG artefacts are small compared with the image."""
_JPEG_QUALITY = 95

Pixels = npt.NDArray[np.uint8]


class BadImage(Exception):
    """Bytes that are not an image, or an image that must not be decoded; the message gives the reason."""


def decode(data: bytes) -> Image.Image:
    """Decode an image: the first frame, rotated as its EXIF orientation says, transparency composited on white.

    Returns:
        An RGB image of 8 bits per channel.

    Raises:
        BadImage: The bytes are empty, damaged, truncated, not an image, or of too many pixels.
    """
    if not data:
        raise BadImage("the file is empty")
    try:
        with warnings.catch_warnings():
            # Pillow warns above half the size that it refuses, and about odd but harmless metadata.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                if image.width * image.height > _MAX_PIXELS:
                    raise BadImage(f"{image.width}x{image.height} is more than {_MAX_PIXELS:,} pixels")
                image.load()
                return _to_rgb(ImageOps.exif_transpose(image))
    except BadImage:
        raise
    # Damaged files reach deep into Pillow's decoders, which raise almost anything.
    except Exception as error:
        raise BadImage(_reason(error)) from error


def resize(image: Image.Image, image_size: int) -> Pixels:
    """Stretch to image_size x image_size with an antialiased triangle filter (tf.image's bilinear with antialias).

    Returns:
        Pixels uint8 [image_size, image_size, 3].
    """
    return np.asarray(image.resize((image_size, image_size), Image.Resampling.BILINEAR))


def encode(pixels: Pixels) -> bytes:
    """Encode prepared pixels as PNG or JPEG, whichever `encoding_format` chooses for their size."""
    buffer = io.BytesIO()
    image = Image.fromarray(pixels)
    if encoding_format(pixels.shape[0]) == "png":
        image.save(buffer, "PNG", compress_level=6)
    else:
        image.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return buffer.getvalue()


def encoding_format(image_size: int) -> str:
    """Return how images of this size are stored: `png` or `jpeg`."""
    return "png" if image_size <= _LARGEST_LOSSLESS_SIZE else "jpeg"


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16") or image.mode == "I":
        # Pillow clips 16-bit grey when it converts; the upper byte is what a viewer shows.
        image = Image.fromarray((np.asarray(image).astype(np.uint32).clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB")
    return image.convert("RGB")


def _reason(error: Exception) -> str:
    if type(error).__name__ == "UnidentifiedImageError":
        return "not an image, or damaged at its start"
    return " ".join(str(error).split())[:160] or type(error).__name__
