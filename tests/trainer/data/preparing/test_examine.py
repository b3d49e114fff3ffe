"""What is computed of one image: exact figures, and similar signatures of near-duplicates."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from trainer.data.preparing.quality import likeness, signatures
from trainer.data.preparing.read import Examined, examine


def photograph(seed: int) -> Image.Image:
    """Blobs of colour, 120x90."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((120, 90), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str = "PNG", **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def examined(data: bytes, image_size: int = 48) -> Examined:
    found = examine(data, image_size)
    assert isinstance(found, Examined)
    return found


def alike(one: Image.Image, other: bytes) -> bool:
    lines = [{**vars(each.figures), "appearance": each.appearance} for each in map(examined, (encoded(one), other))]
    found = signatures.unpacked(map(signatures.signature_of, lines))
    assert found.shape == (2, 968)
    return bool(len(likeness.find(found, np.array([False, True])).pairs))


@pytest.mark.parametrize("image_size", [48, 100, 2048])
def test_figures_are_exact(image_size: int) -> None:
    data = encoded(Image.new("RGB", (30, 20), (255, 254, 1)))
    found = examined(data, image_size)
    number = image_size * image_size
    assert found.figures.pixel_sums == (255 * number, 254 * number, number)
    assert found.figures.pixel_sums_of_squares == (255**2 * number, 254**2 * number, number)
    assert (found.figures.width, found.figures.height, found.figures.num_bytes) == (30, 20, len(data))
    assert found.figures.content_hash == hashlib.sha256(data).hexdigest()
    assert found.stored_hash == hashlib.sha256(found.stored).hexdigest()
    assert Image.open(io.BytesIO(found.stored)).size == (image_size, image_size)


def test_near_duplicates_have_similar_signatures_and_others_have_not() -> None:
    for seed in range(10):
        image = photograph(seed)
        assert alike(image, encoded(image, "JPEG", quality=60))
        assert alike(image, encoded(ImageEnhance.Brightness(image).enhance(0.8)))
        assert alike(image, encoded(image.resize((240, 180))))
        assert not alike(image, encoded(photograph(seed + 100)))


def test_a_bad_image_is_a_reason_on_one_line() -> None:
    assert examine(b"", 48) == "the file is empty"
    reason = examine(encoded(photograph(1))[:200], 48)
    assert isinstance(reason, str)
    assert "\n" not in reason
