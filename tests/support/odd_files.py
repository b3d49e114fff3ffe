"""Image files as people have them, one of a kind each, with different pixels: `made()["JPEG"]["CMYK"]`."""

import functools
import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image, PngImagePlugin

from trainer.data import images

ENDINGS = {"BMP": "bmp", "GIF": "gif", "JPEG": "jpg", "PNG": "png", "PPM": "ppm", "TIFF": "tif", "WebP": "webp"}
"""Format -> ending of its file names."""
ROTATED = b"\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"
"""The entry of EXIF for orientation 6, little-endian."""
_XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'


def photo(width: int = 120, height: int = 90, *, seed: int = 0) -> Image.Image:
    """Smooth random colours."""
    coarse = np.random.default_rng((width, height, seed)).integers(
        0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8
    )
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def exif(orientation: int, endian: str = "<") -> bytes:
    """An EXIF block of a camera."""
    block = Image.Exif()
    block.endian = endian
    block[0x010F] = "a camera"
    block[0x0112] = orientation
    return block.tobytes()


def with_segments(data: bytes, *segments: tuple[int, bytes]) -> bytes:
    """Insert (marker, content) at the start of a JPEG."""
    return data[:2] + b"".join(struct.pack(">BBH", 0xFF, m, len(c) + 2) + c for m, c in segments) + data[2:]


def with_chunk(data: bytes, kind: bytes, content: bytes) -> bytes:
    """Insert a chunk into a PNG, before its pixels."""
    at = data.index(b"IDAT") - 4
    chunk = struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return data[:at] + chunk + data[at:]


def _transparent(image: Image.Image) -> Image.Image:
    """Clear on the left, opaque on the right."""
    image.putalpha(Image.linear_gradient("L").rotate(90).resize(image.size))
    return image


def _deep(image: Image.Image) -> Image.Image:
    """16 bits of grey."""
    return Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 251)


def _deep_colour(image: Image.Image) -> bytes:
    """A PNG of 16 bits per channel, which Pillow does not write."""
    samples = (np.asarray(image).astype(np.uint32) * 251).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in samples)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", image.width, image.height, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks
    )


def _bmp(image: Image.Image, *, kind: str) -> bytes:
    """A BMP that Pillow does not write: `top-down`, `16` bits per pixel or `OS/2`."""
    width, height = image.size
    pixels = np.asarray(image)[..., ::-1]
    bits = 24
    if kind == "16":
        blue, green, red = (pixels[..., channel].astype("<u2") >> 3 for channel in range(3))
        pixels, bits = (red << 10 | green << 5 | blue)[..., np.newaxis], 16
    pixels = pixels.view(np.uint8).reshape(height, -1) if bits == 16 else pixels.reshape(height, -1)
    rows = [row.tobytes() + bytes(-len(row) % 4) for row in pixels]
    content = b"".join(rows if kind == "top-down" else reversed(rows))
    header = struct.pack(
        "<IiiHHIIiiII", 40, width, -height if kind == "top-down" else height, 1, bits, 0, 0, 0, 0, 0, 0
    )
    if kind == "OS/2":
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    start = 14 + len(header)
    return b"BM" + struct.pack("<IHHI", start + len(content), 0, 0, start) + header + content


def _jpegs() -> dict[str, bytes]:
    def jpeg(seed: int, **options: Any) -> bytes:
        return encoded(photo(seed=seed), "JPEG", **{"quality": 92} | options)

    comment = (0xFE, b"Exif\0\0II*\0" + ROTATED)
    thumbnail = exif(1) + ROTATED
    long = (0xE2, b"ICC_PROFILE\0\1\1" + bytes(60_000))
    return {
        "plain": jpeg(0),
        "progressive": jpeg(1, progressive=True),
        "grey": encoded(photo(seed=2).convert("L"), "JPEG"),
        "CMYK": encoded(photo(seed=3).convert("CMYK"), "JPEG"),
        "4:4:4": jpeg(4, subsampling=0),
        "4:2:2": jpeg(5, subsampling=1),
        "RGB": jpeg(6, keep_rgb=True),
        "restart markers": jpeg(7, restart_marker_blocks=3),
        "with bytes after its end": jpeg(8) + b"\xff\xd9 more",
        "stored by `prepare`": images.encode_image(images.stretch(photo(seed=9), 96)),
        "stored by `prepare`, with bytes after its end": images.encode_image(images.stretch(photo(seed=10), 96))
        + b"\n",
        "of a camera with previews (MPO)": encoded(
            photo(seed=11), "MPO", save_all=True, append_images=[photo(60, 44)], exif=exif(6)
        ),
        "1x1": encoded(photo(1, 1), "JPEG"),
        "2,000x3": encoded(photo(2000, 3), "JPEG"),
        **{f"EXIF {each}": jpeg(20 + each, exif=exif(each)) for each in range(1, 9)},
        "EXIF 6, big-endian": jpeg(30, exif=exif(6, ">")),
        "EXIF 6, after long segments": with_segments(jpeg(31), long, long, (0xE1, exif(6))),
        "EXIF 1, and an entry outside its list": with_segments(jpeg(32), (0xE1, thumbnail)),
        "like EXIF in a comment": with_segments(jpeg(33), comment),
        "EXIF 1, and like EXIF in a comment": with_segments(jpeg(34), comment, (0xE1, exif(1))),
        "orientation in XMP": with_segments(jpeg(35), (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + _XMP)),
    }


def _pngs() -> dict[str, bytes]:
    def png(seed: int, mode: str = "RGB", **options: Any) -> bytes:
        return encoded(photo(seed=seed).convert(mode), "PNG", **options)

    def palette(seed: int, bits: int, **options: Any) -> bytes:
        return encoded(photo(seed=seed).quantize(2**bits), "PNG", bits=bits, **options)

    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", _XMP.decode())
    profile = PngImagePlugin.PngInfo()
    block = exif(6)
    profile.add_text("Raw profile type exif", f"\nexif\n{len(block):8}\n{block.hex()}\n", zip=True)
    colour = tuple(photo(seed=49).getpixel((5, 5)))  # type: ignore[arg-type]
    return {
        "plain": png(40),
        "grey": png(41, "L"),
        "palette": palette(42, 8),
        "palette, transparent": palette(43, 8, transparency=3),
        **{f"{bits}-bit": palette(43 + bits, bits) for bits in (1, 2, 4)},
        **{f"{bits}-bit, transparent": palette(53 + bits, bits, transparency=0) for bits in (1, 2, 4)},
        "black and white": png(48, "1"),
        "a transparent colour": png(49, transparency=colour),
        "alpha": encoded(_transparent(photo(seed=50)), "PNG"),
        "grey with alpha": encoded(_transparent(photo(seed=51).convert("L")), "PNG"),
        "16 bits of grey": encoded(_deep(photo(seed=52)), "PNG"),
        "16 bits per channel": _deep_colour(photo(seed=53)),
        "gamma": with_chunk(png(60), b"gAMA", struct.pack(">I", 100_000)),
        "animated": encoded(photo(seed=61), "PNG", save_all=True, append_images=[photo(seed=62)]),
        "3x2,000": encoded(photo(3, 2000), "PNG"),
        "EXIF 1": png(63, exif=exif(1)),
        "EXIF 6": png(64, exif=exif(6)),
        "EXIF 6, big-endian": png(65, exif=exif(6, ">")),
        "EXIF 6 in text": png(66, pnginfo=profile),
        "orientation in XMP": png(67, pnginfo=text),
    }


def _others() -> dict[str, dict[str, bytes]]:
    frames = {"save_all": True, "append_images": [photo(seed=71)], "duration": 50}
    gif = encoded(photo(seed=72), "GIF")
    small_frame = bytearray(gif)
    # The canvas is larger than the first frame, which is not at its corner.
    small_frame[6:10] = struct.pack("<HH", 140, 110)
    at = gif.index(b"\x2c\0\0\0\0")
    small_frame[at + 1 : at + 5] = struct.pack("<HH", 11, 7)
    return {
        "GIF": {
            "plain": gif,
            "grey": encoded(photo(seed=73).convert("L"), "GIF"),
            "transparent": encoded(photo(seed=74).quantize(64), "GIF", transparency=3),
            "animated": encoded(photo(seed=75), "GIF", **frames),
            "smaller than its canvas": bytes(small_frame),
        },
        "BMP": {
            "24 bits": encoded(photo(seed=80), "BMP"),
            "32 bits": encoded(_transparent(photo(seed=81)), "BMP"),
            "grey": encoded(photo(seed=82).convert("L"), "BMP"),
            "palette": encoded(photo(seed=83).quantize(256), "BMP"),
            "black and white": encoded(photo(seed=84).convert("1"), "BMP"),
            "top-down": _bmp(photo(seed=85), kind="top-down"),
            "16 bits": _bmp(photo(seed=86), kind="16"),
            "OS/2": _bmp(photo(seed=87), kind="OS/2"),
        },
        "WebP": {
            "lossy": encoded(photo(seed=90), "WEBP"),
            "lossless": encoded(photo(seed=91), "WEBP", lossless=True),
            "alpha": encoded(_transparent(photo(seed=92)), "WEBP", lossless=True),
            "EXIF 1": encoded(photo(seed=93), "WEBP", exif=exif(1)),
            "EXIF 6": encoded(photo(seed=94), "WEBP", exif=exif(6)),
            "orientation in XMP": encoded(photo(seed=95), "WEBP", xmp=_XMP),
            "animated": encoded(photo(seed=96), "WEBP", **frames),
        },
        "TIFF": {
            "plain": encoded(photo(seed=100), "TIFF"),
            "CMYK": encoded(photo(seed=101).convert("CMYK"), "TIFF"),
            "LZW": encoded(photo(seed=102), "TIFF", compression="tiff_lzw"),
            "16 bits of grey": encoded(_deep(photo(seed=103)), "TIFF"),
            "floating point": encoded(Image.fromarray(np.asarray(photo(seed=104).convert("L"), np.float32)), "TIFF"),
            "two pages": encoded(photo(seed=105), "TIFF", **frames),
        },
        "PPM": {
            "plain": encoded(photo(seed=110), "PPM"),
            "grey": encoded(photo(seed=111).convert("L"), "PPM"),
            "black and white": encoded(photo(seed=112).convert("1"), "PPM"),
        },
    }


@functools.cache
def made() -> dict[str, dict[str, bytes]]:
    """Return format -> kind -> the file."""
    return {"JPEG": _jpegs(), "PNG": _pngs(), **_others()}
