"""What a kill in the middle of a write leaves, from real writes in a real folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from localvertex._base import linux
from localvertex.prove.watch import FolderWatch, flip_bit, read_state, write_state

pytestmark = pytest.mark.skipif(not linux.is_used(), reason="only Linux reports changes of a folder")


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[FolderWatch]:
    (tmp_path / "last.npz").write_bytes(b"old content")
    watch = FolderWatch(tmp_path)
    yield watch
    watch.close()


def half(watch: FolderWatch, folder: Path, save: object) -> tuple[dict[str, bytes], str, bool]:
    """Save, and make of the folder what a kill in the middle leaves."""
    before = read_state(folder)
    assert callable(save)
    save()
    watch.poll()
    found = watch.half_written(before, read_state(folder))
    assert found is not None
    state, name, is_in_place = found
    write_state(folder, state)
    return {name: content for name, (content, _) in read_state(folder).items()}, name, is_in_place


def test_a_file_that_is_overwritten_is_torn(watch: FolderWatch, tmp_path: Path) -> None:
    found = half(watch, tmp_path, lambda: (tmp_path / "last.npz").write_bytes(b"new content"))
    assert found == ({"last.npz": b"new c"}, "last.npz", True)


def test_a_file_that_is_renamed_is_not(watch: FolderWatch, tmp_path: Path) -> None:
    def save() -> None:
        (tmp_path / "x.tmp").write_bytes(b"new content")
        os.replace(tmp_path / "x.tmp", tmp_path / "last.npz")

    found = half(watch, tmp_path, save)
    assert found == ({"last.npz": b"old content", "x.tmp": b"new c"}, "x.tmp", False)


def test_what_follows_the_write_has_not_happened(watch: FolderWatch, tmp_path: Path) -> None:
    def save() -> None:
        (tmp_path / "step-2").mkdir()
        (tmp_path / "step-2" / "w.npz").write_bytes(b"weights!")
        (tmp_path / "latest").write_bytes(b"step-2")
        (tmp_path / "last.npz").unlink()

    assert half(watch, tmp_path, save)[0] == {"last.npz": b"old content", "step-2/w.npz": b"weig"}


def test_a_folder_that_is_renamed_keeps_its_temporary_name(watch: FolderWatch, tmp_path: Path) -> None:
    def save() -> None:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "w.npz").write_bytes(b"weights!")
        (tmp_path / "new").rename(tmp_path / "step-2")

    assert half(watch, tmp_path, save) == ({"last.npz": b"old content", "new/w.npz": b"weig"}, "new/w.npz", False)


def test_logs_are_not_torn(watch: FolderWatch, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "workerpool0-0.jsonl").write_bytes(b"{}\n")
    watch.poll()
    assert watch.half_written({}, read_state(tmp_path)) is None
    write_state(tmp_path, {})
    assert [*read_state(tmp_path)] == ["events/workerpool0-0.jsonl"]


def test_one_bit_of_the_newest_checkpoint_is_flipped(tmp_path: Path) -> None:
    for number, name in enumerate(("old.npz", "new.npz", "newer.tmp")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (number * 100, number * 100))
    state = read_state(tmp_path)
    assert flip_bit(state, 12345) == "new.npz"
    write_state(tmp_path, state)
    assert sum(each.bit_count() for each in (tmp_path / "new.npz").read_bytes()) == 1
    assert (tmp_path / "new.npz").stat().st_mtime == 100
    assert flip_bit({}, 1) == ""
