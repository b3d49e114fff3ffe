"""Decoding image files of all formats and modes, and refusing bad ones."""

import contextlib
import io
import pathlib
import random
import re
import struct
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trainer.data import images

RED = (220, 30, 40)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def striped() -> Image.Image:
    """Left half red, right half white, 12 wide and 8 high."""
    image = Image.new("RGB", (12, 8), "white")
    image.paste(RED, (0, 0, 6, 8))
    return image


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_formats_are_read(kind: str) -> None:
    pixels = np.asarray(images.decode(encoded(striped(), kind)))
    assert pixels.shape == (8, 12, 3)
    assert np.abs(pixels[4, 2].astype(int) - RED).max() < 12


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "CMYK", "I", "I;16"])
def test_modes_become_rgb_of_eight_bits(mode: str) -> None:
    grey = Image.fromarray(np.full((8, 12), 200, np.uint8))
    if mode == "I;16":
        source = Image.fromarray(np.full((8, 12), 200 * 257, np.uint16))
    elif mode == "I":
        source = Image.fromarray(np.full((8, 12), 200 * 257, np.int32))
    else:
        source = grey.quantize(4) if mode == "P" else grey.convert("RGB").convert(mode)
    decoded = images.decode(encoded(source, "TIFF" if mode in ("CMYK", "I") else "PNG"))
    assert decoded.mode == "RGB"
    assert np.allclose(np.asarray(decoded).astype(int), 200, atol=5)


def test_transparency_is_composited_on_white() -> None:
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert np.asarray(images.decode(encoded(image, "PNG"))).min() == 255


def test_a_transparent_palette_colour_is_composited_on_white() -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([0, 0, 0, 255, 0, 0])
    assert np.asarray(images.decode(encoded(image, "PNG", transparency=0))).min() == 255


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = images.decode(encoded(striped(), "JPEG", exif=exif.tobytes(), quality=95))
    assert decoded.size == ((8, 12) if orientation >= 5 else (12, 8))


def test_first_frame_of_an_animation_is_used() -> None:
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.asarray(images.decode(data))[3, 3].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_several_frames_are_remarked_and_the_first_is_as_if_alone(kind: str) -> None:
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    alone = images.decode_with_remarks(encoded(frames[0], kind, lossless=True))
    several = images.decode_with_remarks(
        encoded(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
    )
    assert (alone[1], several[1]) == ([], [images.SEVERAL_FRAMES])
    assert several[0].tobytes() == alone[0].tobytes()


def test_a_damaged_second_frame_does_no_harm() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (2, 64, 64), np.uint8)
    frames = [Image.fromarray(each) for each in noise]
    whole = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    damaged = whole[: len(encoded(frames[0], "GIF")) + 5]
    assert images.decode(damaged).tobytes() == images.decode(whole).tobytes()


def test_an_image_of_one_pixel_is_read() -> None:
    pixels = np.asarray(images.stretch(images.decode(encoded(Image.new("RGB", (1, 1), RED), "PNG")), 16))
    assert np.array_equal(np.unique(pixels.reshape(-1, 3), axis=0), [RED])


def test_large_images_are_decoded_one_at_a_time() -> None:
    for width, alone in ((8_192, False), (8_193, True)):
        with Image.new("1", (width, 8_192)) as image, images._memory_for(image, 2**27):
            assert images._one_large_image.locked() == alone
    assert not images._one_large_image.locked()


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
def test_heic_under_another_name_is_named(brand: bytes) -> None:
    with pytest.raises(images.BadImage, match=r"^HEIC is not read; convert it to JPEG$"):
        images.decode(b"\0\0\0\x18ftyp" + brand + bytes(64))


def test_bad_bytes_are_refused_with_a_reason() -> None:
    jpeg = encoded(Image.effect_noise((64, 64), 90), "JPEG")
    for data, reason in [
        (b"", "empty"),
        (b"hello, I am a text", "not an image"),
        (jpeg[: len(jpeg) // 2], "truncated"),
        (encoded(striped(), "PNG")[:40], "truncated|damaged|not an image"),
    ]:
        with pytest.raises(images.BadImage, match=reason):
            images.decode(data)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}])
def test_a_jpeg_that_lacks_its_end_is_bad(options: dict[str, Any]) -> None:
    """Also where only the marker is missing: whether pixels are, too, cannot be seen."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(pixels).resize((60, 40)), "JPEG", quality=85, **options)
    for end in (*range(2, len(data), 7), len(data) - 2, len(data) - 1):
        with pytest.raises(images.BadImage):
            images.decode(data[:end])


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(30_000 * 3_751), 9))
    bomb = b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b"")
    assert len(bomb) < 120_000
    with pytest.raises(images.BadImage, match="pixels"):
        images.decode(bomb)


@pytest.mark.parametrize("edge", [11_000, 16_000])
def test_a_decompression_bomb_prints_no_warning(tmp_path: pathlib.Path, edge: int) -> None:
    path = tmp_path / "bomb.png"
    Image.new("1", (edge, edge)).save(path)
    program = (
        "import sys; from trainer.serve import requests\n"
        "try: requests._pixels(0, open(sys.argv[1], 'rb').read(), 32)\n"
        "except requests.Refused as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert "pixels" in done.stdout
    assert done.stderr == ""


def test_prepared_images_have_the_size_asked_for_and_small_ones_are_lossless() -> None:
    pixels = np.asarray(images.stretch(striped(), 32))
    assert pixels.shape == (32, 32, 3)
    assert pixels.dtype == np.uint8
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(images.encode_image(Image.fromarray(pixels))))), pixels)
    assert images.encode_image(images.stretch(striped(), 128)).startswith(b"\xff\xd8")


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype=np.uint8))


def packed(content: bytes) -> bytes:
    """Return the content of a PNG chunk with a name and a compressed text or profile."""
    return b"k\0\0" + zlib.compress(content)


def with_chunk(kind: bytes, content: bytes, *, before: bytes = b"IDAT", damage: int = 0) -> bytes:
    """Return a PNG with one more chunk."""
    data = encoded(NOISE, "PNG")
    at = data.index(before) - 4
    checksum = zlib.crc32(kind + content) ^ damage
    return data[:at] + struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum) + data[at:]


LONG = bytes(3 << 20)
WRONG_ORDER = b"Exif\0\0M\xff\0*\0\0\0\x08"
METADATA = {
    "a long text": with_chunk(b"zTXt", packed(LONG)),
    "a long text in Unicode": with_chunk(b"iTXt", b"k\0\1\0\0\0" + zlib.compress(LONG)),
    "a long colour profile": with_chunk(b"iCCP", packed(LONG)),
    "a long text after the pixels": with_chunk(b"zTXt", packed(LONG), before=b"IEND"),
    "a text with an unknown compression": with_chunk(b"zTXt", b"k\0\7abc"),
    "a text with another checksum": with_chunk(b"tEXt", b"k\0abc", damage=1),
    "EXIF with another checksum": with_chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\0", damage=1),
    "EXIF that is none": with_chunk(b"eXIf", b"no"),
    "a frame without content": with_chunk(b"fcTL", b"abc"),
    "EXIF with the wrong byte order in JPEG": encoded(NOISE, "JPEG", exif=WRONG_ORDER),
    "EXIF with the wrong byte order in WebP": encoded(NOISE, "WEBP", exif=WRONG_ORDER),
}


@pytest.mark.parametrize("what", METADATA)
def test_metadata_never_decides_whether_pixels_are_read(what: str) -> None:
    data = METADATA[what]
    kind = {b"\x89P": "PNG", b"\xff\xd8": "JPEG", b"RI": "WEBP"}[data[:2]]
    assert images.decode(data).tobytes() == images.decode(encoded(NOISE, kind)).tobytes()


def test_an_orientation_beside_damaged_metadata_is_undone() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(NOISE, "PNG", exif=exif.tobytes())
    at = data.index(b"IDAT") - 4
    long = with_chunk(b"iCCP", packed(LONG))
    extra = long[long.index(b"iCCP") - 4 : long.index(b"IDAT") - 4]
    assert images.decode(data[:at] + extra + data[at:]).size == (16, 24)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_an_orientation_beside_an_entry_that_cannot_be_written_again_is_undone(kind: str) -> None:
    # A horizontal resolution that is a text (Pillow's issue 8348).
    entries = [(0x0112, 3, 1, b"\0\6\0\0"), (0x011A, 2, 1, b"a\0\0\0")]
    block = struct.pack(">H", 2) + b"".join(struct.pack(">HHI4s", *entry) for entry in entries) + bytes(4)
    data = encoded(NOISE, kind, exif=b"Exif\0\0MM\0*\0\0\0\x08" + block)
    assert images.decode(data).size == (16, 24)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP"])
def test_a_damaged_file_has_a_reason_without_words_of_python(kind: str) -> None:
    data, chosen, reasons = encoded(NOISE, kind), random.Random(1), set()
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(8):
            damaged[chosen.randrange(len(data))] = chosen.choice((0, 255, chosen.randrange(256)))
        with contextlib.suppress(images.BadImage):
            images.decode(bytes(damaged))
            continue
        with pytest.raises(images.BadImage) as caught:
            images.decode(bytes(damaged))
        reasons.add(str(caught.value))
    words = re.compile(r"Error|Plugin|b'|argument|operand|index|unpack|object|-\d")
    assert [each for each in reasons if words.search(each)] == []


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000", "EPS"])
def test_a_format_that_is_not_read_is_refused_under_any_name(kind: str) -> None:
    with pytest.raises(images.BadImage, match=r" is not read; convert it to JPEG$"):
        images.decode(encoded(NOISE, kind))
