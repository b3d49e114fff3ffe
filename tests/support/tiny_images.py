"""Writes sources of very many images, each of a hundred bytes."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

NUM_CLASSES = 10


def images(begin: int, end: int) -> Iterator[tuple[str, bytes]]:
    """Yield paths with a folder per class, and grey PNGs of 2x2 pixels; a different one for each number."""
    return ((f"{number % NUM_CLASSES}/{number}.png", _png(number)) for number in range(begin, end))


def write(source: Path, num_images: int, *, begin: int = 0) -> None:
    """Write the images of these numbers into a folder."""
    for label in range(NUM_CLASSES):
        (source / str(label)).mkdir(parents=True, exist_ok=True)
    for path, content in images(begin, num_images):
        (source / path).write_bytes(content)


def _png(number: int) -> bytes:
    rows = struct.pack(">BHBH", 0, number % 2**16, 0, number >> 16)
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    content = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
