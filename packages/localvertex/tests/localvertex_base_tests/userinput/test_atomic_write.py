"""Small files are replaced as a whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from localvertex_base.userinput import files


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    for text in ("old", "nëw"):
        files.write_text(target, text)
        assert target.read_text("utf-8") == text
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_torn_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "state.json"
    files.write_text(target, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        files.write_text(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_of_several_files_none_is_replaced_when_one_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    files.write_text(target, "old")
    with pytest.raises(FileNotFoundError):
        files.write_all({target: b"new", tmp_path / "missing" / "b.json": b"new"})
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda source, target: (calls.append("replace"), replace(source, target)))
    files.write_text(tmp_path / "state.json", "new")
    assert calls == ["fsync", "replace"]


def test_a_file_whose_name_has_the_longest_length_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    files.write_text(target, "new")
    assert target.read_text() == "new"
