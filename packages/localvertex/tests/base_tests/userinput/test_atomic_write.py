"""Small files are replaced as a whole or not at all; what a killed process left is removed, and nothing else is."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localvertex._base.userinput import atomic_write, outputs

PROGRAM = """
import sys
from pathlib import Path
from localvertex._base.userinput import atomic_write
target = Path(sys.argv[1])
with atomic_write.folder(target) if sys.argv[2] == "folder" else atomic_write._file(target, 0o666):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(python: str, package: Path, target: Path, kind: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that is about to write a target; it ends with the block."""
    command = [python, "-c", PROGRAM, target, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=package) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_only_what_a_killed_process_left_is_removed(python: str, package: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out.html"
    not_ours = [".out.html.mine.partial", ".other.html.0123abcd.partial", "out.html.0123abcd.partial"]
    for name in not_ours:
        (tmp_path / name).mkdir()
    with writer(python, package, target, kind) as killed, writer(python, package, target, kind) as living:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(os.listdir(tmp_path)) == len(not_ours) + 2
        outputs.write({target: b"report"})
        left = set(os.listdir(tmp_path)) - {*not_ours, "out.html"}
        assert len(left) == 1
        living.communicate("")
    assert sorted(os.listdir(tmp_path)) == sorted([*not_ours, "out.html"])


def test_a_link_in_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").touch()
    (tmp_path / ".out.0123abcd.partial").symlink_to("mine")
    atomic_write.remove_left(tmp_path / "out")
    assert (tmp_path / "mine" / "photo.jpg").exists()


def test_a_writer_whose_file_is_taken_for_a_remain_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making a file and locking it, a process that removes remains may find it."""
    names = iter(["aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr(os, "urandom", lambda _: bytes.fromhex(next(names)))
    lock = atomic_write._lock

    def removed_first(descriptor: int) -> bool:
        atomic_write.remove_left(tmp_path / "out")
        monkeypatch.setattr(atomic_write, "_lock", lock)
        return lock(descriptor)

    monkeypatch.setattr(atomic_write, "_lock", removed_first)
    with atomic_write._file(tmp_path / "out", 0o666) as (aside, _):
        assert aside.name == ".out.bbbbbbbb.partial"
        assert os.listdir(tmp_path) == [aside.name]


def test_long_names_of_several_bytes_per_character_are_cut(tmp_path: Path) -> None:
    outputs.write({tmp_path / ("ü" * 127): b"report"})
    with atomic_write.folder(tmp_path / ("ü" * 127)) as aside:
        assert aside.is_dir()
    assert os.listdir(tmp_path) == ["ü" * 127]


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    for text in ("old", "nëw"):
        atomic_write.write_text(target, text)
        assert target.read_text("utf-8") == text
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_torn_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "state.json"
    atomic_write.write_text(target, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write.write_text(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_of_several_files_none_is_replaced_when_one_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    atomic_write.write_text(target, "old")
    with pytest.raises(FileNotFoundError):
        atomic_write.write_all({target: b"new", tmp_path / "missing" / "b.json": b"new"})
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda source, target: (calls.append("replace"), replace(source, target)))
    atomic_write.write_text(tmp_path / "state.json", "new")
    assert calls == ["fsync", "replace"]


def test_a_file_whose_name_has_the_longest_length_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    atomic_write.write_text(target, "new")
    assert target.read_text() == "new"
