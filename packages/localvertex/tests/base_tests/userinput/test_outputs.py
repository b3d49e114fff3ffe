"""A file for output may be a link, which is followed; only regular files are replaced."""

import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from localvertex._base.userinput import atomic_write, outputs
from localvertex._base.userinput.errors import UserError


def device(path: Path, minor: int) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.write_bytes(b"")
    except PermissionError:
        pytest.skip("devices can only be made by root, and may be used only where the mount allows it")


def null(path: Path) -> None:
    device(path, 3)


def zero(path: Path) -> None:
    device(path, 5)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


SPECIAL = [null, os.mkfifo, unix_socket, os.mkdir]


@pytest.mark.parametrize("make", SPECIAL)
def test_what_is_not_a_regular_file_is_never_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    target = tmp_path / "x"
    make(target)
    before = target.lstat()
    with pytest.raises(OSError, match=r"regular file|Is a directory") as caught:
        atomic_write.write_text(target, "new")
    assert caught.value.filename == str(target)
    assert os.path.samestat(before, target.lstat())
    assert os.listdir(tmp_path) == ["x"]


def test_records_replace_a_link_and_outputs_follow_it(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("old")
    link.symlink_to(target)
    outputs.write({link: b"report"})
    assert (link.is_symlink(), target.read_text()) == (True, "report")
    # A step could otherwise have any file of the user overwritten.
    atomic_write.write_text(link, "record")
    assert (link.is_symlink(), link.read_text(), target.read_text()) == (False, "record", "report")


def test_a_link_to_a_file_that_does_not_exist_yet_makes_it(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("new")
    outputs.check_file("--report", link)
    outputs.write({link: b"report"})
    assert (link.is_symlink(), (tmp_path / "new").read_text()) == (True, "report")


def test_a_folder_that_was_not_refused_is_made_behind_a_link_too(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "a" / "b" / "target"
    link.symlink_to(target)
    outputs.check_file("--report", link)
    outputs.write({link: b"report"})
    assert (link.is_symlink(), target.read_text()) == (True, "report")


def test_standard_output_is_no_file_even_if_it_is_redirected_into_one(
    python: str, package: Path, tmp_path: Path
) -> None:
    program = "from localvertex._base.userinput import outputs; outputs.check_file('--report', '/dev/stdout')"
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run([python, "-c", program], stdout=out, stderr=subprocess.PIPE, text=True, cwd=package)
    assert "--report='/dev/stdout' cannot be written (it is in a folder of the system)" in done.stderr
    assert (done.returncode, os.listdir(tmp_path)) == (1, ["out"])


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (os.mkdir, "x", "it is a folder"),
        (unix_socket, "x", "it is a device, a pipe or a socket"),
        (os.mkfifo, "x", "it is a device, a pipe or a socket"),
        (zero, "x", "it is a device, a pipe or a socket"),
        (Path.touch, "x/report.html", "not a directory"),
        (Path.touch, "x/more/report.html", "not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x")
    with pytest.raises(UserError) as caught:
        outputs.check_file("--report", name)
    assert str(caught.value) == f"--report={name!r} cannot be written ({reason}); give another file"
    assert os.listdir(tmp_path) == ["x"]


def test_folders_of_the_system_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the folder only plays the system's: on a defect, the machine that runs the tests would lose a device."""
    monkeypatch.setattr(atomic_write, "_SYSTEM_FOLDERS", (str(tmp_path),))
    (tmp_path / "link").symlink_to("/nowhere")
    for path in (tmp_path / "new", tmp_path / "link", tmp_path / "more" / "new"):
        with pytest.raises(OSError, match="ordinary folder"):
            atomic_write.write_text(path, "x")
    with pytest.raises(UserError, match="it is in a folder of the system"):
        outputs.check_file("--report", tmp_path / "new")
    with pytest.raises(UserError, match="it is in a folder of the system"):
        outputs.check_folder("--output-dir", tmp_path / "new")
    assert os.listdir(tmp_path) == ["link"]
