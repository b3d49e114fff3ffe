"""Image files of the kinds that clients send, made from a dataset's own images, for the trial of a model."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainer.data import images

Pixels = npt.NDArray[np.uint8]
_ORIENTATION, _ROTATED = 0x0112, 6
"""EXIF's tag, and its value for a camera that was turned by 90 degrees."""
_SCALE, _LARGE_SCALE = (1.75, 1.25), 4.0
"""Width and height as multiples of the prepared size."""
_MAX_EDGE = 4096


def variants(originals: Iterable[Pixels]) -> dict[str, list[bytes]]:
    """Return kind -> image files, one per original; the originals are uint8 [S, S, 3]."""
    made: dict[str, list[bytes]] = {}
    for pixels in originals:
        for kind, data in _variants(Image.fromarray(pixels)):
            made.setdefault(kind, []).append(data)
    return made


def _variants(original: Image.Image) -> Iterator[tuple[str, bytes]]:
    usual = _stretch(original, *_SCALE)
    exif = Image.Exif()
    exif[_ORIENTATION] = _ROTATED
    yield "JPEG", _encode(usual, "JPEG", quality=90)
    yield "PNG", _encode(usual, "PNG")
    yield "greyscale JPEG", _encode(usual.convert("L"), "JPEG", quality=90)
    yield "greyscale PNG", _encode(usual.convert("L"), "PNG")
    # The file of a camera that was turned: its pixels are turned back.
    turned = usual.transpose(Image.Transpose.ROTATE_90)
    yield "EXIF-rotated JPEG", _encode(turned, "JPEG", quality=90, exif=exif)
    yield "larger JPEG", _encode(_stretch(original, _LARGE_SCALE, _LARGE_SCALE), "JPEG", quality=90)


def _stretch(image: Image.Image, horizontally: float, vertically: float) -> Image.Image:
    size = (min(_MAX_EDGE, round(image.width * horizontally)), min(_MAX_EDGE, round(image.height * vertically)))
    return image.resize(size, Image.Resampling.BICUBIC)


def _encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def prepare(files: Iterable[bytes], image_size: int) -> Pixels:
    """Return what prepare makes of the files: uint8 [B, S, S, 3]."""
    return np.stack([images.resize(images.decode(data), image_size) for data in files])
