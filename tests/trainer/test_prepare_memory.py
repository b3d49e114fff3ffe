"""The memory of prepare does not grow with the number of images."""

import struct
import zlib
from pathlib import Path

import pytest

from tests.support.modules import run_module


def image(number: int) -> bytes:
    """A grey PNG of 2x2 pixels; a different file for each number."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = struct.pack(">BHBH", 0, number % 2**16, 0, number >> 16)
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def peak(tmp_path: Path, num_images: int) -> int:
    """Peak memory in KiB."""
    source = tmp_path / str(num_images)
    for number in range(num_images):
        folder = source / str(number % 50)
        if number < 50:
            folder.mkdir(parents=True)
        (folder / f"{number}.png").write_bytes(image(number))
    done = run_module("tests.support.prepare_memory", str(source), f"{source}-out")
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.slow
def test_ten_times_as_many_images_need_the_same_memory(tmp_path: Path) -> None:
    assert peak(tmp_path, 20_000) < 1.1 * peak(tmp_path, 2_000)
