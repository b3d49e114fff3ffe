"""Every mode that Pillow decodes becomes RGB of 8 bits with the right brightness, or is refused by name."""

import hashlib
import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from trainer.data import images

Array = npt.NDArray[Any]
GREY = np.random.default_rng(5).integers(0, 256, (11, 13), dtype=np.uint8)
COLOUR = np.random.default_rng(6).integers(0, 256, (11, 13, 3), dtype=np.uint8)
ALPHA = np.random.default_rng(7).integers(0, 256, (11, 13), dtype=np.uint8)
INKS = np.random.default_rng(8).integers(0, 256, (11, 13, 4), dtype=np.uint8)
SIXTEEN = np.random.default_rng(9).integers(0, 65536, (11, 13), dtype=np.uint16)
UNIT = np.random.default_rng(10).random((11, 13), dtype=np.float32)


def encoded(image: Image.Image, kind: str = "TIFF", **options: Any) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def stored(values: Array, mode: str = "", kind: str = "TIFF") -> bytes:
    """The bytes of a file with these values in a mode, which need not be the one Pillow chooses for the type."""
    if not mode:
        return encoded(Image.fromarray(values), kind)
    return encoded(Image.frombytes(mode, (values.shape[1], values.shape[0]), values.tobytes()), kind)


def on_white(values: Array, alpha: Array) -> Array:
    """Values composited on white."""
    share = (alpha / 255).reshape(*alpha.shape, *[1] * (values.ndim - 2))
    return values * share + 255 * (1 - share)


def luminance(values: Array, **options: Any) -> bytes:
    """The bytes of a TIFF in YCbCr."""
    return encoded(Image.fromarray(values).convert("RGB").convert("YCbCr"), **options)


def palette() -> Image.Image:
    """Grey values as indices of a palette that has the colours of COLOUR's rows."""
    image = Image.fromarray(GREY % 143).convert("L")
    indexed = Image.frombytes("P", image.size, image.tobytes())
    indexed.putpalette(COLOUR.reshape(-1).tolist())
    return indexed


COLOURS = COLOUR.reshape(-1, 3)[GREY % 143]
"""What the palette's image shows."""


@pytest.mark.parametrize(
    ("data", "fingerprint"),
    [
        (stored(GREY, kind="PNG"), "37f8b64afe084288"),
        (stored(COLOUR, kind="PNG"), "b398226737a60274"),
        (stored(np.dstack([COLOUR, ALPHA]), kind="PNG"), "6460a9486cb651d9"),
        (stored(np.dstack([GREY, ALPHA]), "LA", kind="PNG"), "5bac7c96bcdff9ea"),
        (encoded(palette(), "PNG"), "70358d9e1bb299a2"),
        (encoded(palette(), "PNG", transparency=3), "b29233773fe1e24d"),
        (stored(INKS, "CMYK"), "c7249f67b3526a25"),
        (stored(SIXTEEN, kind="PNG"), "918926d6555f0192"),
        (encoded(Image.fromarray(GREY > 127), "PNG"), "8aa7d254c4f25fa2"),
        (stored(COLOUR, kind="BMP"), "b398226737a60274"),
        (stored(GREY.astype(np.float32)), "37f8b64afe084288"),
        (stored(SIXTEEN.astype(np.int32)), "918926d6555f0192"),
    ],
)
def test_pixels_are_those_of_earlier_versions(data: bytes, fingerprint: str) -> None:
    assert hashlib.sha256(images.decode(data).tobytes()).hexdigest()[:16] == fingerprint


def twelve_bits() -> bytes:
    """A TIFF of 12 bits per pixel, which Pillow reads and cannot write: two values share three bytes."""
    values = (SIXTEEN[:10, :12] >> 4).reshape(-1, 2)
    packed = np.stack(
        [values[:, 0] >> 4, (values[:, 0] & 15) << 4 | values[:, 1] >> 8, values[:, 1] & 255], axis=1
    ).astype(np.uint8)
    tags = [(256, 12), (257, 10), (258, 12), (259, 1), (262, 1), (273, 8), (277, 1), (278, 10), (279, packed.size)]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    start = struct.pack("<2sHI", b"II", 42, 8 + packed.size)
    return start + packed.tobytes() + struct.pack("<H", len(tags)) + directory + bytes(4)


def lab() -> bytes:
    """A TIFF of the neutral grey L* = 50 %, which is 118.9 in sRGB."""
    return stored(np.dstack([np.full_like(GREY, 128), np.full_like(GREY, 0), np.full_like(GREY, 0)]), "LAB")


@pytest.mark.parametrize(
    ("mode", "data", "expected"),
    [
        ("1", lambda: encoded(Image.fromarray(GREY > 127)), np.mean(GREY > 127) * 255),
        ("L", lambda: stored(GREY), np.mean(GREY)),
        ("LA", lambda: stored(np.dstack([GREY, ALPHA]), "LA"), np.mean(on_white(GREY, ALPHA))),
        ("P", lambda: encoded(palette()), np.mean(COLOURS)),
        ("PA", lambda: encoded(Image.fromarray(GREY).convert("PA")), np.mean(GREY)),
        ("RGB", lambda: stored(COLOUR), np.mean(COLOUR)),
        ("RGBA", lambda: stored(np.dstack([COLOUR, ALPHA])), np.mean(on_white(COLOUR, ALPHA))),
        ("CMYK", lambda: stored(INKS, "CMYK"), np.mean((255.0 - INKS[..., :3]) * (255.0 - INKS[..., 3:]) / 255)),
        ("CMYK", lambda: encoded(Image.new("CMYK", (9, 9), (0, 0, 0, 51)), "JPEG"), 204),
        ("RGB", lambda: luminance(GREY, compression="tiff_lzw"), np.mean(GREY)),
        ("RGB", lambda: encoded(Image.fromarray(COLOUR).convert("YCbCr"), "JPEG", quality=98), np.mean(COLOUR)),
        ("LAB", lab, 118.9),
        ("I;16", lambda: stored(SIXTEEN), np.mean(SIXTEEN // 256)),
        ("I;16", lambda: stored(SIXTEEN, kind="PNG"), np.mean(SIXTEEN // 256)),
        ("I;16B", lambda: stored(SIXTEEN.astype(">u2"), "I;16B"), np.mean(SIXTEEN // 256)),
        ("I;16", twelve_bits, np.mean(SIXTEEN[:10, :12] // 256)),
        ("I", lambda: stored(SIXTEEN.astype(np.int32)), np.mean(SIXTEEN // 256)),
        ("I", lambda: stored(SIXTEEN, kind="PPM"), np.mean(SIXTEEN // 256)),
        ("F", lambda: stored(UNIT), np.mean(UNIT) * 255),
        ("F", lambda: stored(UNIT * 255), np.mean(UNIT) * 255),
    ],
)
def test_each_mode_has_the_brightness_that_its_values_mean(
    mode: str, data: Callable[[], bytes], expected: float
) -> None:
    content = data()
    with Image.open(io.BytesIO(content)) as image:
        assert image.mode == mode
    decoded = images.decode(content)
    assert decoded.mode == "RGB"
    assert np.mean(np.asarray(decoded)) == pytest.approx(expected, abs=1.0)


def test_an_uncompressed_ycbcr_file_is_refused_and_never_misread() -> None:
    """With bytes at its end, Pillow 12 would find the fourth byte of each pixel that it expects."""
    for end in (b"", b"\0" * 1000):
        with pytest.raises(images.BadImage, match=r"^an uncompressed TIFF in YCbCr is not read; convert it to JPEG$"):
            images.decode(luminance(COLOUR) + end)


def test_ycbcr_keeps_its_luminance() -> None:
    decoded = np.asarray(images.decode(luminance(COLOUR, compression="tiff_lzw")))
    bt_601 = np.array([0.299, 0.587, 0.114])
    assert np.mean(np.abs((decoded.astype(float) - COLOUR) @ bt_601)) < 2


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (UNIT - 0.5, "floating point values from -0.* have no known scale"),
        (UNIT * 4000, "floating point values .* have no known scale"),
        (np.where(UNIT > 0.5, np.nan, UNIT), "floating point values from nan"),
        (np.where(UNIT > 0.5, np.inf, UNIT), "floating point values .* to inf"),
        (GREY.astype(np.int32) - 100, "integers from -100 to .* do not fit 16 bits"),
        (SIXTEEN.astype(np.int32) * 1000, "do not fit 16 bits"),
        (GREY.astype(np.int32), "largest value 25. of 16 bits would be black"),
        (GREY.astype(np.uint16), "largest value 25. of 16 bits would be black"),
    ],
)
def test_values_without_a_scale_are_refused_by_name(values: Array, reason: str) -> None:
    with pytest.raises(images.BadImage, match=reason):
        images.decode(stored(values))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint16])
def test_a_black_image_is_black(kind: type) -> None:
    assert not np.asarray(images.decode(stored(np.zeros((4, 4), kind)))).any()


def test_the_scale_of_floats_is_remarked() -> None:
    assert images.decode_with_remarks(stored(UNIT))[1] == ["images of floating point, read as 0 to 1"]
    assert images.decode_with_remarks(stored(UNIT * 9))[1] == ["images of floating point, read as 0 to 255"]
    assert images.decode_with_remarks(stored(GREY))[1] == []
