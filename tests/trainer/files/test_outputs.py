"""Lines that users want in a file: on this machine or in a bucket."""

import tracemalloc
from pathlib import Path

import pytest

from exact_resume.files import storage
from trainer.files import outputs
from vertex_testing.cloud_storage.server import CloudStorage


def test_lines_for_a_user_are_never_in_memory_together(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lines")
    tracemalloc.start()
    try:
        outputs.write_lines(str(tmp_path / "link"), (f"{number:0200}\n" for number in range(20_000)))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "lines").read_text() == "".join(f"{number:0200}\n" for number in range(20_000))
    outputs.write_lines(str(tmp_path / "lines"), iter(()))
    assert (tmp_path / "lines").read_bytes() == b""


@pytest.mark.parametrize("lines", [[], ["a\n", "ü\n"]], ids=["none", "two"])
def test_lines_become_one_object(server: CloudStorage, lines: list[str]) -> None:
    outputs.write_lines("gs://b/lines", iter(lines))
    assert storage.read_bytes("gs://b/lines").decode() == "".join(lines)
    assert server.buckets.names("b") == ["lines"]
