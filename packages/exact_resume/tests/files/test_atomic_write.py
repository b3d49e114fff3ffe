"""Small files are replaced as a whole or not at all, and what a writer leaves is found by its lock."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from exact_resume.files import atomic_write


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    atomic_write.write(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert ((tmp_path / "link").read_text(), (tmp_path / "target").read_text()) == ("new", "old")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_is_not_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    kind = (tmp_path / "x").stat().st_mode
    with pytest.raises(OSError, match="x'") as caught:
        atomic_write.write(tmp_path / "x", b"new")
    assert caught.value.filename == str(tmp_path / "x")
    assert ((tmp_path / "x").stat().st_mode, os.listdir(tmp_path)) == (kind, ["x"])


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(OSError, match="is not a regular file in an ordinary folder: '/dev/null'"):
        atomic_write.write(Path("/dev/null"), b"new")


def test_an_error_names_the_file_and_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        atomic_write.write(tmp_path / "x", b"new")
    assert caught.value.filename == str(tmp_path / "x")
    assert ((tmp_path / "x").read_text(), os.listdir(tmp_path)) == ("old", ["x"])


def test_what_a_killed_writer_left_is_removed_and_what_is_written_now_is_not(tmp_path: Path) -> None:
    for left in (".x.0123abcd.partial", ".x.0123abce.partial"):
        (tmp_path / left).touch()
    for other in (".y.0123abcd.partial", ".x.partial", "x"):
        (tmp_path / other).touch()
    with atomic_write.replacing(tmp_path / "x"), atomic_write.folder(tmp_path / "x") as folder:
        atomic_write.remove_left(tmp_path / "x")
        (written,) = set(os.listdir(tmp_path)) - {".y.0123abcd.partial", ".x.partial", "x", folder.name}
        assert written.startswith(".x.")
    assert sorted(os.listdir(tmp_path)) == [".x.partial", ".y.0123abcd.partial", "x"]
