"""A folder with one sub-folder per class: what counts as an image, as a class and as a split."""

import os
from pathlib import Path

import pytest
from PIL import Image

from trainer.data.sources.folder import FolderSource
from trainer.data.sources.source import Source
from vertex_gpu_training.userinput.errors import UserError


def write_image(path: Path) -> None:
    """Write a small image, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 5)).save(path)


def names(source: Source) -> list[str]:
    """The names of a source's images, in order."""
    return [image.name for image in source.images()]


def test_a_folder_per_class_is_read_sorted_and_hidden_files_are_skipped(tmp_path: Path) -> None:
    write_image(tmp_path / "dog" / "b.PNG")
    write_image(tmp_path / "dog" / "deeper" / "a.jpg")
    write_image(tmp_path / "Katze mit 'Hut' ü" / 'mein "Bild" ß.jpeg')
    write_image(tmp_path / "dog" / ".hidden.png")
    write_image(tmp_path / ".cache" / "x.png")
    write_image(tmp_path / "beside.png")
    (tmp_path / "dog" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "dog" / "notes.txt").write_text("x")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["Katze mit 'Hut' ü", "dog"]
    assert names(source) == ["Katze mit 'Hut' ü/mein \"Bild\" ß.jpeg", "dog/b.PNG", "dog/deeper/a.jpg"]
    assert [image.label for image in source.images()] == [0, 1, 1]
    assert source.num_ignored_files == 1


def test_links_are_followed_but_not_in_cycles(tmp_path: Path) -> None:
    write_image(tmp_path / "elsewhere" / "x.png")
    write_image(tmp_path / "data" / "a" / "1.png")
    write_image(tmp_path / "data" / "b" / "1.png")
    os.symlink(tmp_path / "elsewhere", tmp_path / "data" / "b" / "linked")
    os.symlink(tmp_path / "data" / "a", tmp_path / "data" / "a" / "again")
    assert names(FolderSource(str(tmp_path / "data"))) == ["a/1.png", "b/1.png", "b/linked/x.png"]


def test_top_level_split_folders_are_kept(tmp_path: Path) -> None:
    for split in ("Train", "val", "test"):
        for name in ("a", "b"):
            write_image(tmp_path / split / name / "1.png")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["a", "b"]
    assert [image.split for image in source.images()] == ["train", "train", "test", "test", "validation", "validation"]


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    write_image(tmp_path / "test" / "1.png")
    write_image(tmp_path / "production" / "1.png")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["production", "test"]
    assert {image.split for image in source.images()} == {""}


def test_a_class_without_training_images_is_refused(tmp_path: Path) -> None:
    write_image(tmp_path / "train" / "a" / "1.png")
    write_image(tmp_path / "train" / "b" / "1.png")
    write_image(tmp_path / "test" / "c" / "1.png")
    with pytest.raises(UserError, match=r"class 'c' .* has no images in train"):
        FolderSource(str(tmp_path))


def test_file_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_image(tmp_path / "b" / "1.png")
    write_image(tmp_path / "plain.png")
    os.rename(os.fsencode(tmp_path / "plain.png"), os.fsencode(tmp_path / "a") + b"/caf\xe9.png")
    source = FolderSource(str(tmp_path))
    image = next(source.images())
    assert image.name == "a/caf�.png"
    assert image.read().startswith(b"\x89PNG")
