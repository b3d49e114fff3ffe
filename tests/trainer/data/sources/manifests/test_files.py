"""Which files of a source are manifests: one, or those of a folder."""

import os
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data.sources.factory import open_source
from trainer.data.sources.layout import ListedSource
from trainer.data.sources.manifests.files import find
from trainer.data.sources.manifests.source import ManifestSource

LINES = "1.jpg,cat\n2.jpg,dog\n"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(LINES)


def found(source: Path | str) -> list[str]:
    return [file.name for file in find(str(source))]


def test_a_file_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["test-0.jsonl", "training-00000-of-00002", "training-00001-of-00002.jsonl", "z.CSV"]
    write(tmp_path / "export", *names, ".hidden.csv", "README.md", "desktop.ini")
    assert found(tmp_path / "export" / "z.CSV") == ["z.CSV"]
    assert found(tmp_path / "export") == found(f"{tmp_path}/export/") == names
    write(tmp_path / "flat", "1.jpg", "2.jpg", "dataset.json")
    assert found(tmp_path / "flat") == []
    monkeypatch.chdir(tmp_path)
    assert found("export/z.CSV") == ["z.CSV"]


def test_the_characters_of_a_pattern_may_be_in_names(tmp_path: Path) -> None:
    write(tmp_path, "a[1]/b*.csv", "a[1]/c.csv", "a1/d.csv")
    assert found(tmp_path / "a[1]") == ["b*.csv", "c.csv"]
    assert found(tmp_path / "a[1]" / "b*.csv") == ["b*.csv"]


def test_a_folder_of_classes_beside_a_manifest_stays_one(tmp_path: Path) -> None:
    write(tmp_path, "labels.csv", "cat/1.jpg", "dog/2.jpg")
    assert isinstance(open_source(str(tmp_path), ""), ListedSource)
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
        ("*.csv", "not found"),
        ("images/*", "not found"),
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
    with pytest.raises(UserError) as caught:
        open_source(source, "")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
