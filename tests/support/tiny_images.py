"""Writes sources of very many images, each of a hundred bytes."""

import struct
import zlib
from pathlib import Path

_NUM_CLASSES = 50


def write(source: Path, num_images: int) -> None:
    """Write grey PNGs of 2x2 pixels into a folder per class; a different file for each number."""
    for number in range(num_images):
        folder = source / str(number % _NUM_CLASSES)
        if number < _NUM_CLASSES:
            folder.mkdir(parents=True)
        (folder / f"{number}.png").write_bytes(_png(number))


def _png(number: int) -> bytes:
    rows = struct.pack(">BHBH", 0, number % 2**16, 0, number >> 16)
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    content = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
