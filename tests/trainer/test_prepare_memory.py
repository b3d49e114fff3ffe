"""The memory of prepare hardly grows with the number of images: a million need less than a gigabyte."""

from pathlib import Path

import pytest

from tests.support import tiny_images
from tests.support.modules import run_module


def peak(tmp_path: Path, num_images: int) -> int:
    """Peak memory in KiB."""
    source = tmp_path / str(num_images)
    tiny_images.write(source, num_images)
    done = run_module("tests.support.prepare_memory", str(source), f"{source}-out")
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.soak
@pytest.mark.slow
def test_each_image_needs_less_than_a_kilobyte(tmp_path: Path) -> None:
    # From a size at which all buffers are full.
    assert peak(tmp_path, 24_000) - peak(tmp_path, 12_000) < 12_000
