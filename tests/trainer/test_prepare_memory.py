"""The memory of prepare does not grow with the number of images."""

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


@pytest.mark.slow
def test_ten_times_as_many_images_need_the_same_memory(tmp_path: Path) -> None:
    assert peak(tmp_path, 20_000) < 1.1 * peak(tmp_path, 2_000)
