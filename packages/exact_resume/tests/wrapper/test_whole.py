"""Which checkpoints count as whole: none that is cut off anywhere, and none by its name alone under another rule."""

import io
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


@pytest.mark.parametrize("data", [npz(), nested()], ids=["npz", "nested"])
def test_a_zip_file_counts_only_if_it_is_complete(tmp_path: Path, data: bytes) -> None:
    rule, path = Rule.parse("header:*.bin", tmp_path), tmp_path / "a.bin"
    path.write_bytes(data)
    assert list(rule.look("a.bin")) == ["a.bin"]
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(NotWhole):
            rule.look("a.bin")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.npz", npz()),
        ("a.json", b'{"step": 3}'),
        (
            "a.safetensors",
            b"\x3b" + bytes(7) + b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}     ' + bytes(8),
        ),
    ],
)
def test_a_closed_file_of_a_known_kind_has_to_be_complete(tmp_path: Path, name: str, data: bytes) -> None:
    rule, path = Rule.parse("closed:a.*", tmp_path), tmp_path / name
    path.write_bytes(data)
    assert rule.is_complete(rule.look(name)) is True
    for length in range(2, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(NotWhole):
            rule.look(name)
    path.rename(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"x")
    assert rule.is_complete(rule.look("a.txt")) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff" * 100, b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.", b"PK\5\6" + bytes(18), b"PK\5\6" + b"\xff" * 18],
)
def test_other_files_have_no_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(NotWhole):
        Rule.parse("header:*.pt", tmp_path).look("a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_a_folder_counts_by_its_marker_if_nothing_in_it_is_newer(tmp_path: Path) -> None:
    rule, folder = Rule.parse("marker:step-*/sub/done", tmp_path), tmp_path / "step-1"
    (folder / "sub").mkdir(parents=True)
    (folder / "weights").write_text("w")
    with pytest.raises(NotWhole):
        rule.look("step-1")
    (folder / "sub/done").touch()
    assert set(rule.look("step-1")) == {"step-1/sub/done", "step-1/weights"}
    os.utime(folder / "weights", ns=(0, 2**62))
    with pytest.raises(NotWhole):
        rule.look("step-1")


@pytest.mark.parametrize("made", [Path.mkdir, os.mkfifo])
def test_links_and_special_files_are_never_read(tmp_path: Path, made: Callable[[Path], None]) -> None:
    rule = Rule.parse("rename:step-*", tmp_path)
    made(tmp_path / "step-1")
    (tmp_path / "step-2").mkdir()
    (tmp_path / "step-2/link").symlink_to("/etc", target_is_directory=True)
    (tmp_path / "step-3").symlink_to("step-2", target_is_directory=True)
    # What does not match is not set aside by a start, either.
    assert sorted(rule.names()) == ["step-1", "step-2"]
    for name in ("step-1", "step-2", "step-3"):
        with pytest.raises(NotWhole):
            rule.look(name)


@pytest.mark.parametrize("pattern", ["", "a/b", "/a", ".*", "../a"])
def test_a_pattern_of_what_belongs_to_a_checkpoint_stays_in_its_folder(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InputError, match="is not a pattern of names"):
        Rule.parse("rename:a", tmp_path, [pattern])


def test_hidden_names_never_match(tmp_path: Path) -> None:
    (tmp_path / ".exact_resume").mkdir()
    (tmp_path / "a").touch()
    assert Rule.parse("rename:*", tmp_path).names() == ["a"]
    assert Rule.parse("rename:*", tmp_path / "missing").names() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*.pt",
        "quiet:*.pt",
        "rename:",
        "rename:a/b",
        "rename:.*",
        "marker:a",
        "marker:a/",
        "marker:.*/a",
        "header:a/b",
    ],
)
def test_a_rule_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a rule; expected rename:PATTERN"):
        Rule.parse(text, Path())
