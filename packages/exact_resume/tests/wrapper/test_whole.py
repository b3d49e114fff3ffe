"""Which checkpoints count as whole: none that is cut off anywhere, and none by its name alone under another rule."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from exact_resume.errors import InputError
from exact_resume.wrapper.whole import NotWhole, Rule


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, w=np.arange(10))
    return buffer.getvalue()


def nested() -> bytes:
    """Return a zip file with another one stored in it, whose end looks like the end of a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.npz", npz())
        archive.writestr("last", b"x" * 50)
    return buffer.getvalue()


def safetensors() -> bytes:
    header = {"__metadata__": {"step": "3"}, "w": {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(20)


def hdf5(version: int) -> bytes:
    """Return the superblock of the file format specification, II.A, and some data."""
    size = 120
    if version < 2:
        fields = bytes([version, 0, 0, 0, 0, 8, 8, 0]) + bytes(8 + 4 * version)
        addresses = [0, 2**64 - 1, size, 2**64 - 1]
    else:
        fields, addresses = bytes([version, 8, 8, 0]), [0, 2**64 - 1, size, 48]
    head = b"\x89HDF\r\n\x1a\n" + fields + b"".join(each.to_bytes(8, "little") for each in addresses)
    return head.ljust(size, b"d")


@pytest.mark.parametrize("data", [npz(), nested(), safetensors(), *map(hdf5, range(4))], ids=range(7))
def test_a_file_counts_by_its_header_only_if_it_is_complete(tmp_path: Path, data: bytes) -> None:
    rule, path = Rule.parse("header:*.bin"), tmp_path / "a.bin"
    path.write_bytes(data)
    assert [file[0] for file in rule.look(tmp_path, "a.bin")] == ["a.bin"]
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(NotWhole):
            rule.look(tmp_path, "a.bin")
    path.write_bytes(data + b"more")
    with pytest.raises(NotWhole):
        rule.look(tmp_path, "a.bin")


def test_the_layout_of_hdf5_is_that_of_its_library(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    rule = Rule.parse("header:*.h5")
    for bounds in ("earliest", "latest"):
        path = tmp_path / f"{bounds}.h5"
        with h5py.File(path, "w", libver=bounds) as file:
            file["w"] = np.arange(1000)
        assert rule.look(tmp_path, path.name)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(NotWhole, match="its header says"):
            rule.look(tmp_path, path.name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 100,
        b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.",
        (2**62).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b'""',
        (9).to_bytes(8, "little") + b'{"w": {}}',
        b"PK\5\6" + bytes(18),
    ],
)
def test_other_files_have_no_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(NotWhole):
        Rule.parse("header:*.pt").look(tmp_path, "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_a_folder_counts_by_its_marker_if_nothing_in_it_is_newer(tmp_path: Path) -> None:
    rule, folder = Rule.parse("marker:step-*/sub/done"), tmp_path / "step-1"
    (folder / "sub").mkdir(parents=True)
    (folder / "weights").write_text("w")
    with pytest.raises(NotWhole, match="no file sub/done"):
        rule.look(tmp_path, "step-1")
    (folder / "sub/done").touch()
    assert {file[0] for file in rule.look(tmp_path, "step-1")} == {"step-1/sub/done", "step-1/weights"}
    os.utime(folder / "weights", ns=(0, 2**62))
    with pytest.raises(NotWhole, match="a file is newer"):
        rule.look(tmp_path, "step-1")


@pytest.mark.parametrize("made", [Path.mkdir, os.mkfifo])
def test_links_and_special_files_are_never_read(tmp_path: Path, made: Callable[[Path], None]) -> None:
    rule = Rule.parse("rename:step-*")
    made(tmp_path / "step-1")
    (tmp_path / "step-2").mkdir()
    (tmp_path / "step-2/link").symlink_to("/etc", target_is_directory=True)
    (tmp_path / "step-3").symlink_to("step-2", target_is_directory=True)
    assert rule.names(tmp_path) == ["step-1", "step-2"]
    for name in ("step-1", "step-2", "step-3"):
        with pytest.raises(NotWhole):
            rule.look(tmp_path, name)


def test_hidden_names_never_match(tmp_path: Path) -> None:
    (tmp_path / ".exact_resume").mkdir()
    (tmp_path / "a").touch()
    assert Rule.parse("rename:*").names(tmp_path) == ["a"]
    assert Rule.parse("rename:*").names(tmp_path / "missing") == []


@pytest.mark.parametrize(
    "text", ["", "*.pt", "quiet:*.pt", "rename:", "rename:a/b", "marker:a", "marker:a/../b", "marker:a/", "header:a/b"]
)
def test_a_rule_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a rule; expected rename:PATTERN"):
        Rule.parse(text)
