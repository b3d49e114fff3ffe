"""The exported model's own signature gives the pixels that training reads, or an error."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from PIL import Image

from tests import signature_table
from tests.support import odd_files
from trainer.data import images
from trainer.models import models
from trainer.results import saved_model, serving


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
    prepared = images.to_pixels(data, image_size).astype(int)
    served = signature_table.signature(image_size)(tf.constant([data]))[0].numpy().astype(int)
    return np.abs(prepared - served)


@pytest.mark.parametrize("size", [(8, 8), (500, 375), (33, 70), (224, 224)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
@pytest.mark.parametrize("image_size", [32, 64])
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


@pytest.mark.parametrize(("image_size", "largest", "mean"), [(32, 1, 0.15), (96, 15, 1.6), (224, 20, 1.6)])
def test_no_odd_file_is_read_wrong(image_size: int, largest: int, mean: float) -> None:
    """Above 64 pixels, a difference of rounding grows when the image is encoded as JPEG."""
    files = [(kind, name, data) for kind, found in odd_files.made().items() for name, data in found.items()]
    found = {(kind, name): signature_table.difference(data, image_size) for kind, name, data in files}
    read = {file: each for file, each in found.items() if each}
    assert {file: each for file, each in read.items() if each[0] > largest or each[1] > mean} == {}
    assert len(read) > 50
    assert read["JPEG", "EXIF 6, after long segments"]
    assert read["JPEG", "like EXIF in a comment"]
    refused = found.keys() - read.keys()
    assert {("BMP", "palette"), ("PNG", "EXIF 6"), ("WebP", "EXIF 6"), ("GIF", "transparent")} < refused
    # Also as earlier versions stored images, with a comment.
    small = images.stretch(odd_files.photo(), image_size)
    stored = images.encode_image(small)
    for each in (
        (stored, encoded(small, "JPEG", quality=95, subsampling=0, comment=b"x")) if image_size > 64 else (stored,)
    ):
        assert signature_table.difference(each, image_size) == (0, 0)


def test_the_table_of_the_page_is_that_of_the_signature() -> None:
    assert signature_table.page() == signature_table.PAGE.read_text(), "run python -m tests.signature_table"


def test_an_exported_model_refuses_by_name(tmp_path: Path) -> None:
    network = models.build("convnet", image_size=96, num_classes=2)
    metadata = {"model": "convnet"}
    saved_model.write(
        network, str(tmp_path), class_names=["a", "b"], image_size=96, metadata=metadata, seen_images=None
    )
    loaded = saved_model.load(str(tmp_path))
    stored = odd_files.made()["JPEG"]["stored by `prepare`"]
    served = loaded.loaded.signatures["serving_default"](image_bytes=tf.constant([stored]))["probabilities"]
    assert np.array_equal(served, loaded.predict(images.to_pixels(stored, 96)[np.newaxis]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="a BMP with a palette"):
        loaded.loaded.signatures["serving_default"](image_bytes=tf.constant([odd_files.made()["BMP"]["palette"]]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe1\xff\xffExif\0\0II*\0",
        b"\xff\xd8\xff\xe1\0\x20Exif\0\0MM\0*\xff\xff\xff\xff",
        b"BM",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\neXIfII*\0",
        b"RIFF\0\0\0\0WEBPEXIF",
    ],
)
@pytest.mark.parametrize("image_size", [32, 96])
def test_damaged_files_are_errors(data: bytes, image_size: int) -> None:
    assert signature_table.difference(data, image_size) is None
