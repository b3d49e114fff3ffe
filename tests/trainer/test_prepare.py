"""Preparing a dataset: reproducible bytes, stable splits, bad files, and refusals that leave nothing behind."""

import functools
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trainer.data import dataset, dataset_files
from trainer.prepare import prepare
from vertex_gpu_training.userinput.errors import UserError


def noise(path: Path, seed: int, size: tuple[int, int] = (20, 14)) -> None:
    """Write an image of random pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def folder(root: Path, num_images: int = 12) -> Path:
    """Write a source of two classes."""
    for name in ("a", "b"):
        for number in range(num_images):
            noise(root / name / f"{number}.png", seed=hash((name == "a", number)) % 2**32)
    return root


def run(source: Path | str, output: Path, /, **options: Any) -> dict[str, Any]:
    """Prepare a source at 16x16 pixels and return the metadata."""
    return prepare(
        **{
            "source": str(source),
            "output_directory": str(output),
            "report_path": f"{output}.html",
            "image_size": 16,
            **options,
        }
    )


def files(directory: Path) -> dict[str, bytes]:
    """The content of each file."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    assert run(source, tmp_path / "one") == run(source, tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_the_demos_dataset_has_the_fingerprint_that_its_run_id_was_made_from(tmp_path: Path) -> None:
    """With the Pillow of the locks; another fingerprint would train every finished run again."""
    metadata = run("digits", tmp_path / "out", image_size=32)
    assert metadata["fingerprint"] == "ebc7b4a2d0b38bb0a33f845dbb84af3d9b9b209117da9bc2676a791a5b2104d1"


def test_fingerprint_follows_content_and_labels_not_names_or_dates(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    first = run(source, tmp_path / "one")
    moved = tmp_path / "renamed"
    shutil.copytree(source, moved)
    os.rename(moved / "a" / "0.png", moved / "a" / "zero.png")
    os.utime(moved / "a" / "1.png", (0, 0))
    assert run(moved, tmp_path / "two")["fingerprint"] == first["fingerprint"]
    os.rename(moved / "a" / "1.png", moved / "b" / "from a.png")
    assert run(moved, tmp_path / "three")["fingerprint"] != first["fingerprint"]
    assert run(source, tmp_path / "four", image_size=20)["fingerprint"] != first["fingerprint"]


@pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
def test_tensorflow_datasets_reads_the_result(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    metadata = run(folder(tmp_path / "source"), tmp_path / "out")
    builder = tfds.builder_from_directory(str(tmp_path / "out"))
    prepared = dataset.load(str(tmp_path / "out"))
    assert builder.info.features["label"].names == ["a", "b"]
    total = 0
    for split, count in prepared.num_examples.items():
        source = builder.as_data_source(split=split)
        assert len(source) == count
        total += count
        for index in range(count):
            (record,) = prepared.records(split, [index])
            assert np.array_equal(source[index]["image"], record.pixels())
            assert source[index]["label"] == record.label
            assert source[index]["file_name"].decode() == record.file_name
    assert total == metadata["num_examples"] == 24


def test_bad_files_are_skipped_counted_and_named(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    (source / "a" / "torn.png").write_bytes((source / "a" / "3.png").read_bytes()[:200])
    (source / "b" / "empty <b>.jpg").write_bytes(b"")
    metadata = run(source, tmp_path / "out")
    assert metadata["num_bad_files"] == 2
    assert metadata["num_examples"] == 24
    report = Path(f"{tmp_path / 'out'}.html").read_text()
    assert "a/torn.png" in report
    assert "empty &lt;b&gt;.jpg" in report
    assert {name for name, _ in dataset.load(str(tmp_path / "out")).statistics["bad_files"]} == {
        "a/torn.png",
        "b/empty <b>.jpg",
    }


def test_too_many_bad_files_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for number in range(4):
        (source / "a" / f"bad{number}.jpg").write_bytes(b"not an image")
    with pytest.raises(UserError, match=r"4 of 28 images .*a/bad0.jpg: not an image"):
        run(source, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["source"]
    assert run(source, tmp_path / "out", max_bad_fraction=0.2)["num_bad_files"] == 4


def test_heic_files_are_bad_images_and_change_no_byte(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    plain = run(source, tmp_path / "plain")
    (source / "a" / "9.heic").write_bytes(b"x")
    (source / "__MACOSX" / "a").mkdir(parents=True)
    noise(source / "__MACOSX" / "a" / "1.png", 1)
    metadata = run(source, tmp_path / "out")
    assert metadata == {**plain, "num_bad_files": 1}
    assert dataset.load(str(tmp_path / "out")).statistics["bad_files"] == [
        ["a/9.heic", "HEIC is not read; convert it to JPEG"]
    ]


def test_too_many_heic_files_are_refused_before_an_image_is_read(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for number in range(3):
        (source / "a" / f"{number}.heic").write_bytes(b"x")
        (source / "b" / f"{number}.png").unlink()
        os.mkfifo(source / "b" / f"{number}.png")
    message = r"6 of 27 images .*a/0.heic: HEIC is not read; convert it to JPEG.*max_bad_fraction"
    with pytest.raises(UserError, match=message):
        run(source, tmp_path / "out")
    assert run(source, tmp_path / "out", max_bad_fraction=0.3)["num_bad_files"] == 6
    # In a sample, the files that are left out do not count again.
    assert run(source, tmp_path / "sample", max_bad_fraction=0.25, max_examples=10)["num_examples"] == 10


def test_what_is_skipped_is_one_line_of_the_log_and_a_table_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder(tmp_path / "source")
    (source / ".git").mkdir()
    (source / "a" / "torn\n.png").write_bytes(b"")
    (source / "b" / "<notes>.txt").write_text("x")
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    frames[0].save(source / "b" / "moving.gif", save_all=True, append_images=frames[1:])
    Image.fromarray(np.random.default_rng(1).random((5, 5), dtype=np.float32)).save(source / "b" / "float.tif")
    run(source, tmp_path / "out")
    assert capsys.readouterr().err == (
        f"note: source '{source}': bad files, skipped: 1 (a/torn\ufffd.png: the file is empty); system or hidden files"
        " and folders, ignored: 1 (.git); files that are not images, ignored: 1 (b/<notes>.txt); images of floating"
        " point, read as 0 to 1: 1 (b/float.tif); images with several frames, of which only the first is used: 1"
        " (b/moving.gif)\n"
    )
    report = Path(f"{tmp_path / 'out'}.html").read_text()
    for text in ("b/&lt;notes&gt;.txt", "b/moving.gif", "read as 0 to 1", "system or hidden files and folders"):
        assert text in report


def test_a_source_without_anything_to_remark_logs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder(tmp_path / "source"), tmp_path / "out")
    assert capsys.readouterr().err == ""


def test_repeated_images_are_never_in_two_splits_and_are_counted(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", num_images=30)
    for number in range(30):
        shutil.copy(source / "a" / f"{number}.png", source / "a" / f"copy{number}.png")
    shutil.copy(source / "a" / "0.png", source / "b" / "the same.png")
    run(source, tmp_path / "out")
    data = dataset.load(str(tmp_path / "out"))
    splits_of: dict[bytes, set[str]] = {}
    for split in data.num_examples:
        for record in data.records(split):
            splits_of.setdefault(record.image_bytes, set()).add(split)
    assert all(len(splits) == 1 for splits in splits_of.values())
    assert data.statistics["num_repeated_images"] == 31
    assert data.statistics["num_images_under_several_classes"] == 1


def test_an_empty_output_folder_is_used_and_a_full_one_is_not_touched(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    (tmp_path / "out").mkdir()
    run(source, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(UserError, match="exists and is not empty"):
        run(source, tmp_path / "out")
    assert files(tmp_path / "out") == before


def test_a_sample_has_every_class_and_stays_when_the_folder_grows(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", num_images=40)
    assert run(source, tmp_path / "out", max_examples=20)["num_examples"] == 20
    data = dataset.load(str(tmp_path / "out"))
    assert {sum(counts.values()) for counts in data.statistics["counts"].values()} == {10}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": 4}, "image_size=4"),
        ({"image_size": 5000}, "image_size=5000"),
        ({"max_examples": -1}, "max_examples=-1"),
        ({"max_bad_fraction": 1.0}, "max_bad_fraction=1.0"),
        ({"source": "nowhere"}, "not found"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(options.pop("source", "digits"), tmp_path / "out", **options)
    assert os.listdir(tmp_path) == []


def test_too_few_images_for_three_splits_are_refused(tmp_path: Path) -> None:
    noise(tmp_path / "source" / "a" / "1.png", 1)
    noise(tmp_path / "source" / "b" / "1.png", 2)
    with pytest.raises(UserError, match="2 distinct images, too few"):
        run(tmp_path / "source", tmp_path / "out")


def test_shards_are_cut_at_their_size_and_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_files, "SHARD_BYTES", 5000)
    run(folder(tmp_path / "source", num_images=20), tmp_path / "out")
    data = dataset.load(str(tmp_path / "out"))
    assert len(data.shards["train"]) > 1
    assert sum(1 for _ in data.records("train")) == data.num_examples["train"]
    os.remove(tmp_path / "out" / data.shards["train"][0])
    with pytest.raises(UserError, match="is missing"):
        list(data.records("train"))


@functools.cache
def small_shapes() -> Any:
    """A builder as users of TensorFlow Datasets write them; a name can be registered only once."""
    import tensorflow_datasets as tfds

    class SmallShapes(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            features = tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(None, None, 3)),
                    "label": tfds.features.ClassLabel(names=["z", "a"]),
                    "image/filename": tfds.features.Text(),
                }
            )
            return tfds.core.DatasetInfo(builder=self, features=features, supervised_keys=("image", "label"))

        def _split_generators(self, dl_manager: object) -> Any:
            return {"train": self._generate_examples(0, 60), "test": self._generate_examples(60, 80)}

        def _generate_examples(self, start: int, stop: int) -> Any:
            for number in range(start, stop):
                pixels = np.random.default_rng(number).integers(0, 256, (9, 11, 3), dtype=np.uint8)
                yield number, {"image": pixels, "label": number % 2, "image/filename": str(number)}

    return SmallShapes


@pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
@pytest.mark.parametrize("file_format", ["array_record", "tfrecord"])
def test_a_tfds_dataset_with_own_splits_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """A dataset prepared into a data_dir, as `tfds build` leaves it, with train and test."""
    small_shapes()(data_dir=str(tmp_path / "tfds"), file_format=file_format).download_and_prepare()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))
    metadata = run("tfds:small_shapes", tmp_path / "out")
    data = dataset.load(str(tmp_path / "out"))
    assert data.class_names == ("z", "a")
    assert metadata["num_test"] == 20
    assert data.num_examples["train"] + data.num_examples["validation"] == 60
    assert data.num_examples["validation"] > 0


@pytest.mark.parametrize(
    ("max_examples", "fingerprint"),
    [
        (0, "8eb69e98f6e0a2ce0e40ab8dd5cb31d582e64037b43e9cc52629b250156ae021"),
        (200, "4aabbf2fa5cdd3d79097fc80a16b0d45acaf19affb32fec5a1f442c3e97ce398"),
    ],
)
def test_splits_and_sample_are_those_of_earlier_versions_with_seed_0(
    max_examples: int, fingerprint: str, tmp_path: Path
) -> None:
    assert run("digits", tmp_path / "out", max_examples=max_examples)["fingerprint"] == fingerprint
