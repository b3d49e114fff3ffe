"""Decoding and resizing for serving give the pixels that prepare gives."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from PIL import Image

from trainer.data import images
from trainer.results import serving


def photo(width: int, height: int) -> Image.Image:
    """A smooth random image."""
    rng = np.random.default_rng(width * height)
    small = Image.fromarray(rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def difference(data: bytes, image_size: int) -> npt.NDArray[np.int64]:
    """By how much each pixel differs, 0 to 255."""
    prepared = np.asarray(images.stretch(images.decode(data), image_size)).astype(int)
    served = np.asarray(serving.decode_and_resize(tf.constant([data]), image_size))[0].astype(int)
    return np.abs(prepared - served)


@pytest.mark.parametrize("size", [(8, 8), (500, 375), (33, 70), (224, 224)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
@pytest.mark.parametrize("image_size", [32, 224])
def test_served_pixels_are_those_of_prepare_within_rounding(size: tuple[int, int], kind: str, image_size: int) -> None:
    found = difference(encoded(photo(*size), kind), image_size)
    # WebP's colour conversion differs by a few levels between the two decoders.
    assert found.max() <= (8 if kind == "WEBP" else 1)
    assert found.mean() < (2 if kind == "WEBP" else 0.3)


@pytest.mark.parametrize("mode", ["L", "RGBA", "LA", "P"])
def test_served_pixels_of_other_modes(mode: str) -> None:
    image = photo(40, 30)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.linear_gradient("L").resize((40, 30)))
    # Both composite transparency on white before they resize.
    assert difference(encoded(image.convert(mode), "PNG"), 32).max() <= 2


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"transparency": 0}], ids=["opaque", "transparent"])
def test_files_with_few_bits_per_sample_are_not_white(bits: int, options: dict[str, int]) -> None:
    found = encoded(photo(40, 30).quantize(2**bits), "PNG", bits=bits, **options)
    assert found[24] == bits
    assert difference(found, 32).max() <= 2


def test_a_black_and_white_file_is_not_white() -> None:
    assert difference(encoded(photo(40, 30).convert("1"), "PNG"), 32).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("byte_order", ["II", "MM"])
def test_exif_orientation_is_served_as_prepare_does_it(orientation: int, byte_order: str) -> None:
    exif = Image.Exif()
    exif.endian = "<" if byte_order == "II" else ">"
    exif[0x010F] = "a camera"
    exif[0x0112] = orientation
    data = encoded(photo(60, 40), "JPEG", quality=95, exif=exif.tobytes())
    assert (b"Exif\x00\x00" + byte_order.encode()) in data
    assert int(serving.exif_orientation(tf.constant(data))) == orientation
    assert difference(data, 32).max() <= 1


def test_images_of_several_formats_and_sizes_fit_in_one_batch() -> None:
    batch = [encoded(photo(20, 30), "PNG"), encoded(photo(90, 40), "JPEG"), encoded(photo(12, 12), "GIF")]
    assert serving.decode_and_resize(tf.constant(batch), 16).shape == (3, 16, 16, 3)
