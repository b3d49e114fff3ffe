"""What a killed process left is removed by the next one; what a living one uses, or the user made, never is."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localvertex_base.userinput import asides, outputs

PROGRAM = """
import sys
from pathlib import Path
from localvertex_base.userinput import asides
target = Path(sys.argv[1])
with asides.folder(target) if sys.argv[2] == "folder" else asides.file(target, 0o666):
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
    asides.remove_left(tmp_path / "out")
    assert (tmp_path / "mine" / "photo.jpg").exists()


def test_a_writer_whose_file_is_taken_for_a_remain_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making a file and locking it, a process that removes remains may find it."""
    names = iter(["aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr(os, "urandom", lambda _: bytes.fromhex(next(names)))
    lock = asides._lock

    def removed_first(descriptor: int) -> bool:
        asides.remove_left(tmp_path / "out")
        monkeypatch.setattr(asides, "_lock", lock)
        return lock(descriptor)

    monkeypatch.setattr(asides, "_lock", removed_first)
    with asides.file(tmp_path / "out", 0o666) as (aside, _):
        assert aside.name == ".out.bbbbbbbb.partial"
        assert os.listdir(tmp_path) == [aside.name]


def test_long_names_of_several_bytes_per_character_are_cut(tmp_path: Path) -> None:
    outputs.write({tmp_path / ("ü" * 127): b"report"})
    with asides.folder(tmp_path / ("ü" * 127)) as aside:
        assert aside.is_dir()
    assert os.listdir(tmp_path) == ["ü" * 127]
