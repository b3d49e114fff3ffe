"""Which files of a source are manifests: one, those of a folder, and those that match a pattern."""

import os
from pathlib import Path

import pytest

from localvertex_base.userinput.errors import UserError
from trainer.data.sources.factory import open_source
from trainer.data.sources.folder import FolderSource
from trainer.data.sources.manifests.files import find
from trainer.data.sources.manifests.source import ManifestSource

LINES = "1.jpg,cat\n2.jpg,dog\n"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(LINES)


def found(source: Path | str) -> list[str]:
    return [file.name for file in find(str(source))]


def test_a_file_a_folder_and_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["test-0.jsonl", "training-00000-of-00002", "training-00001-of-00002.jsonl", "z.CSV"]
    write(tmp_path / "export", *names, ".hidden.csv", "README.md", "desktop.ini")
    write(tmp_path / "other", "sub/1.csv", "sub/2.csv", "beside/3.csv")
    assert found(tmp_path / "export" / "z.CSV") == ["z.CSV"]
    assert found(tmp_path / "export") == found(f"{tmp_path}/export/") == names
    assert found(tmp_path / "export" / "*") == names
    assert found(tmp_path / "export" / "*.jsonl") == [names[0], names[2]]
    assert found(tmp_path / "export" / "training-*") == names[1:3]
    write(tmp_path / "flat", "1.jpg", "2.jpg", "dataset.json")
    assert found(tmp_path / "flat") == []
    assert found(tmp_path / "flat" / "*") == ["dataset.json"]
    assert found(tmp_path / "other" / "s*" / "[13].csv") == ["sub/1.csv"]
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in find("*/z.CSV")] == [str(tmp_path / "export" / "z.CSV")]
    assert found("export/z.CSV") == ["z.CSV"]


def test_the_characters_of_a_pattern_may_be_in_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a[1]/b*.csv", "a[1]/c.csv", "a1/d.csv")
    assert found(tmp_path / "a[1]") == ["b*.csv", "c.csv"]
    assert found(tmp_path / "a[1]" / "b*.csv") == ["b*.csv"]
    monkeypatch.chdir(tmp_path / "a[1]")
    assert found("c.csv") == ["c.csv"]
    assert found("?.csv") == ["c.csv"]


def test_a_folder_of_classes_beside_a_manifest_stays_one(tmp_path: Path) -> None:
    write(tmp_path, "labels.csv", "cat/1.jpg", "dog/2.jpg")
    assert isinstance(open_source(str(tmp_path), ""), FolderSource)
    assert isinstance(open_source(str(tmp_path / "labels.csv"), ""), ManifestSource)


@pytest.mark.parametrize("images", ["images/1.jpg", "images/README.txt"])
def test_a_folder_with_a_manifest_and_no_classes_is_refused_with_the_manifest_named(
    tmp_path: Path, images: str
) -> None:
    write(tmp_path, "labels.csv", "more.csv", images)
    with pytest.raises(UserError, match=f"; to read its manifest, give {tmp_path}/labels.csv$"):
        open_source(str(tmp_path), "")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("training-00000-of-00001.jsonl", "train"),
        ("validation-1.csv", "validation"),
        ("TEST-1.csv", "test"),
        ("train.csv", ""),
        ("tests.csv", ""),
    ],
)
def test_the_name_of_a_file_gives_the_split(tmp_path: Path, name: str, split: str) -> None:
    write(tmp_path, name)
    (file,) = find(str(tmp_path))
    assert file.split == split


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("missing.csv", "not found"),
        ("*.csv", "matches no manifest; expected .csv or .jsonl files"),
        ("images/*", "matches no manifest"),
        ("pipe.jsonl", "is not a regular file"),
        ("system.csv", "is not a regular file"),
        ("huge.json", "has more than 268,435,456 bytes; split it"),
        ("gs://b*/export/1.csv", "names no bucket"),
        ("a\0*.csv", "a null character"),
    ],
)
def test_what_is_not_a_manifest_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "images/1.jpg")
    os.mkfifo("pipe.jsonl")
    with open("huge.json", "wb") as file:
        file.truncate(2**28 + 1)
    (tmp_path / "system.csv").symlink_to("/proc/self/environ")
    if source == "*.csv":
        (tmp_path / "system.csv").unlink()
    with pytest.raises(UserError) as caught:
        open_source(source, "")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_patterns_are_values_of_source() -> None:
    """Checked before any file is looked for; a pattern in a bucket would need one."""
    from localvertex_base.userinput import paths

    for pattern in ("gs://images/export/*.jsonl", "/data/training-*", "export/[ab]?.csv"):
        assert paths.check("source", pattern) == pattern
