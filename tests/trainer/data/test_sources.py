import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.data.sources.factory import open_source
from trainer.data.sources.folder import FolderSource
from userinput.errors import UserError


def picture(path: Path, colour: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 5), (colour, 0, 0)).save(path)


def names(source):
    return [image.name for image in source.images()]


def test_a_folder_per_class_is_read_sorted_and_hidden_files_are_passed_over(tmp_path):
    picture(tmp_path / "dog" / "b.PNG")
    picture(tmp_path / "dog" / "deeper" / "a.jpg")
    picture(tmp_path / "Katze mit 'Hut' ü" / 'mein "Bild" ß.jpeg')
    picture(tmp_path / "dog" / ".hidden.png")
    picture(tmp_path / ".cache" / "x.png")
    picture(tmp_path / "beside.png")
    (tmp_path / "dog" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "dog" / "notes.txt").write_text("x")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["Katze mit 'Hut' ü", "dog"]
    assert names(source) == ["Katze mit 'Hut' ü/mein \"Bild\" ß.jpeg", "dog/b.PNG", "dog/deeper/a.jpg"]
    assert [image.label for image in source.images()] == [0, 1, 1]
    assert source.num_ignored_files == 1


def test_links_are_followed_but_not_in_circles(tmp_path):
    picture(tmp_path / "elsewhere" / "x.png")
    picture(tmp_path / "data" / "a" / "1.png")
    picture(tmp_path / "data" / "b" / "1.png")
    os.symlink(tmp_path / "elsewhere", tmp_path / "data" / "b" / "linked")
    os.symlink(tmp_path / "data" / "a", tmp_path / "data" / "a" / "again")
    assert names(FolderSource(str(tmp_path / "data"))) == ["a/1.png", "b/1.png", "b/linked/x.png"]


def test_split_folders_on_top_are_kept(tmp_path):
    for split in ("Train", "val", "test"):
        for name in ("a", "b"):
            picture(tmp_path / split / name / "1.png")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["a", "b"]
    assert [image.split for image in source.images()] == ["train", "train", "test", "test", "validation", "validation"]


def test_a_class_may_be_called_test(tmp_path):
    picture(tmp_path / "test" / "1.png")
    picture(tmp_path / "production" / "1.png")
    source = FolderSource(str(tmp_path))
    assert source.class_names == ["production", "test"]
    assert {image.split for image in source.images()} == {""}


def test_a_class_that_is_only_tested_is_refused(tmp_path):
    picture(tmp_path / "train" / "a" / "1.png")
    picture(tmp_path / "train" / "b" / "1.png")
    picture(tmp_path / "test" / "c" / "1.png")
    with pytest.raises(UserError, match=r"class 'c' .* has no images in train"):
        FolderSource(str(tmp_path))


def test_file_names_that_are_not_utf8_are_read(tmp_path):
    (tmp_path / "a").mkdir()
    picture(tmp_path / "b" / "1.png")
    picture(tmp_path / "plain.png")
    os.rename(os.fsencode(tmp_path / "plain.png"), os.fsencode(tmp_path / "a") + b"/caf\xe9.png")
    source = FolderSource(str(tmp_path))
    image = next(source.images())
    assert image.name == "a/caf�.png"
    assert image.read().startswith(b"\x89PNG")


def test_mistakes_are_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "a").mkdir(parents=True)
    picture(tmp_path / "single" / "only" / "1.png")
    for source, told in [
        ("nowhere", f"is not a folder (relative paths start at {tmp_path})"),
        ("empty", "no images in"),
        ("single", "only one class"),
        ("", "source is empty"),
        ("s3://bucket/images", "give digits, tfds:NAME, a folder, or gs://BUCKET/FOLDER"),
        ("tfds:no_such_data_set", "is not a dataset of TensorFlow Datasets"),
    ]:
        with pytest.raises(UserError) as caught:
            open_source(source, str(tmp_path))
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)


def test_digits_are_1797_files_in_ten_folders(tmp_path):
    source = open_source("digits", str(tmp_path))
    assert source.class_names == [str(digit) for digit in range(10)]
    assert len(names(source)) == 1797


def test_a_tfds_data_set_that_cannot_be_downloaded_says_what_to_do(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    class Unreachable(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"label": np.int64}))

        def _split_generators(self, dl_manager):
            raise OSError("no network")

        def _generate_examples(self):
            raise NotImplementedError

    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path))
    with pytest.raises(UserError, match=r"cannot be downloaded.*TFDS_DATA_DIR"):
        open_source("tfds:unreachable", str(tmp_path))
