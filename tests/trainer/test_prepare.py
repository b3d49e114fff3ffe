"""Preparing a dataset: reproducible bytes, stable splits, bad files, and refusals that leave nothing behind."""

import dataclasses
import functools
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list, prefixes
from trainer.data.preparing.previous import rows as previous_rows
from trainer.data.preparing.quality.kinds import channels_of
from trainer.data.preparing.quality.signatures import appearance_of
from trainer.data.sources.layout import ListedSource
from trainer.data.splits import SPLITS
from trainer.files import progress
from trainer.files.progress import Progress
from trainer.prepare import main, prepare


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
    """With the Pillow of the locks; another fingerprint would train every finished run again, as format 2 did once."""
    metadata = run("digits", tmp_path / "out", image_size=32)
    assert metadata["fingerprint"] == "195a78101b84cb508dc45f01d9b42e2352537bb1d0c8e20b0df8fff2ddf832e0"


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


def test_a_new_name_changes_only_the_names(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    run(source, tmp_path / "one")
    os.rename(source / "a" / "0.png", source / "a" / ("zero" * 30 + ".png"))
    run(source, tmp_path / "two")
    one, two = (json.loads((tmp_path / name / "dataset.json").read_text()) for name in ("one", "two"))
    for content in (one, two):
        for shard in (shard for shards in content["shards"].values() for shard in shards):
            del shard["sha256"], shard["crc32c"], shard["num_bytes"]
    assert one == two
    before, after = (
        {record.file_name: record for split in SPLITS for record in dataset.load(str(tmp_path / name)).records(split)}
        for name in ("one", "two")
    )
    renamed = after.pop("a/" + "zero" * 30 + ".png")
    assert before.pop("a/0.png") == dataclasses.replace(renamed, file_name="a/0.png")
    assert before == after


def test_the_order_in_which_the_source_lists_its_images_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder(tmp_path / "source")
    shutil.copy(source / "a" / "1.png", source / "b" / "again.png")
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    for number in range(12):
        (source / "a" / f"torn{number}.png").write_bytes(b"")
        frames[0].save(source / "b" / f"moving{number}.gif", save_all=True, append_images=frames[1:])
    run(source, tmp_path / "one", max_bad_fraction=0.5)
    listed = ListedSource.images
    monkeypatch.setattr(ListedSource, "images", lambda self: reversed(list(listed(self))))
    run(source, tmp_path / "two", max_bad_fraction=0.5)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert Path(f"{tmp_path / 'one'}.html").read_bytes() == Path(f"{tmp_path / 'two'}.html").read_bytes()


def test_one_more_image_changes_only_the_shard_whose_prefix_begins_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefixes, "TARGET_BYTES", 6000)
    source = folder(tmp_path / "source", num_images=60)
    run(source, tmp_path / "one")
    noise(source / "b" / "new.png", seed=-3 % 2**32)
    added = hashlib.sha256((source / "b" / "new.png").read_bytes()).digest()
    run(source, tmp_path / "two")

    def shards(name: str) -> dict[tuple[str, str], str]:
        data = dataset.load(str(tmp_path / name))
        return {(split, shard.prefix): shard.sha256 for split in SPLITS for shard in data.shards[split]}

    before, after = shards("one"), shards("two")
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    bits = "".join(f"{byte:08b}" for byte in added)
    assert len(before) > 10
    assert len({split for split, _ in changed}) == 1
    # If the shard is split, its other half is new, too.
    assert all(bits.startswith(prefix) for key in before.keys() & changed for prefix in [key[1]])
    assert all(bits.startswith(prefix[:-1]) for _, prefix in changed)


@pytest.fixture
def progresses(monkeypatch: pytest.MonkeyPatch) -> list[Progress]:
    """All that is made in a test, in order."""
    made: list[Progress] = []

    class Kept(Progress):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(progress, "Progress", Kept)
    return made


@pytest.mark.parametrize(("max_examples", "num_used"), [(0, 24), (10, 10)])
def test_each_phase_counts_up_to_what_was_announced_and_a_short_run_prints_nothing(
    tmp_path: Path, progresses: list[Progress], capsys: pytest.CaptureFixture[str], max_examples: int, num_used: int
) -> None:
    run(folder(tmp_path / "source"), tmp_path / "out", max_examples=max_examples)
    num_images = f"{num_used} of {num_used} images"
    expected = ["listing: 26 entries", f"reading: {num_images}", f"computing statistics: {num_used} images"]
    assert [each.text.split(", ")[0] for each in progresses] == [*expected, f"writing: {num_images}"]
    output = capsys.readouterr()
    assert output.out == ""
    # A sample of 10 images has few in each class.
    assert all(line.startswith("warning: few-images: ") for line in output.err.splitlines())


def test_images_that_were_known_are_counted_apart(
    tmp_path: Path, progresses: list[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the files were old.
    monkeypatch.setattr(previous_rows, "SETTLING_NS", -(10**15))
    source = folder(tmp_path / "source")
    run(source, tmp_path / "one", pipeline_root=str(tmp_path))
    noise(source / "a" / "new.png", seed=99)
    progresses.clear()
    run(source, tmp_path / "two", pipeline_root=str(tmp_path))
    assert progresses[1].text.startswith("reading: 25 of 25 images, 24 reused, ")
    assert (progresses[3].num_known, progresses[3].num_done) == (0, 25)


def test_every_image_is_listed_with_its_figures_or_the_reason_against_it(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    (source / "a" / "torn.png").write_bytes((source / "a" / "3.png").read_bytes()[:200])
    (source / "b" / "1.heic").write_bytes(b"x")
    run(source, tmp_path / "out")
    lines = {line["name"]: line for line in map(json.loads, image_list.read_encoded(tmp_path / "out"))}
    assert list(lines) == sorted(lines)
    assert len(lines) == 26
    assert "truncated" in lines["a/torn.png"]["reason"]
    assert lines["b/1.heic"] == {
        **{"identity": {}, "label": None, "name": "b/1.heic", "split": ""},
        "reason": "HEIC is not read; convert it to JPEG",
    }
    data = dataset.load(str(tmp_path / "out"))
    for split in SPLITS:
        for record in data.records(split):
            line, original = lines[record.file_name], (source / record.file_name).read_bytes()
            pixels = record.pixels().astype(int)
            status = (source / record.file_name).stat()
            assert line == {
                "name": record.file_name,
                "label": data.class_names[record.label],
                "split": split,
                "num_stored_bytes": len(record.image_bytes),
                "identity": {
                    **{"inode": status.st_ino, "size": len(original)},
                    **{"mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns},
                },
                "appearance": appearance_of(
                    Image.fromarray(record.pixels()),
                    channels_of(record.figures.pixel_sums, record.figures.pixel_sums_of_squares, 16**2),
                ),
                "content_hash": hashlib.sha256(original).hexdigest(),
                "stored_hash": hashlib.sha256(record.image_bytes).hexdigest(),
                "perceptual_hash": record.figures.perceptual_hash,
                "width": 20,
                "height": 14,
                "num_bytes": len(original),
                "pixel_sums": pixels.sum(axis=(0, 1)).tolist(),
                "pixel_sums_of_squares": (pixels**2).sum(axis=(0, 1)).tolist(),
                "remarks": [],
            }
            assert record.figures.content_hash == line["content_hash"]


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
            for field, value in dataclasses.asdict(record.figures).items():
                found = source[index][field]
                assert (found.decode() if isinstance(value, str) else tuple(np.ravel(found))) == (
                    value if isinstance(value, str) else tuple(np.ravel(value))
                )
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
    frames = [Image.radial_gradient("L").resize((6, 6)), Image.new("L", (6, 6))]
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
        ({"image_size": 4}, "image_size is 4"),
        ({"image_size": 5000}, "image_size is 5000"),
        ({"max_examples": -1}, "max_examples is -1"),
        ({"max_bad_fraction": 1.0}, "max_bad_fraction is 1.0"),
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
    monkeypatch.setattr(prefixes, "TARGET_BYTES", 20_000)
    run(folder(tmp_path / "source", num_images=20), tmp_path / "out")
    data = dataset.load(str(tmp_path / "out"))
    assert len(data.shards["train"]) > 1
    assert sum(1 for _ in data.records("train")) == data.num_examples["train"]
    os.remove(tmp_path / "out" / data.shards["train"][0].name)
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


def fingerprint_of_format_1(data: Dataset) -> str:
    """What the earlier format called the fingerprint: of images, labels and splits, by stored hash."""
    digest = hashlib.sha256(json.dumps([1, data.image_size, data.class_names]).encode())
    for split in SPLITS:
        rows = sorted((hashlib.sha256(r.image_bytes).hexdigest(), r.label) for r in data.records(split))
        for stored_hash, label in rows:
            digest.update(f"{split}:{label}:{stored_hash};".encode())
    return digest.hexdigest()


@pytest.mark.parametrize(
    ("max_examples", "fingerprint"),
    [
        (0, "8eb69e98f6e0a2ce0e40ab8dd5cb31d582e64037b43e9cc52629b250156ae021"),
        (1200, "eb46865c06d95394e867093ba54a8febdf56293fe002461e92a3de1f66ced821"),
        # Classes with fewer than 100 images are divided evenly since then.
        (200, "2014d4cecdf601cbe0041dbb2ac9193c6a5b9048f8f29da211a08030c8fa1629"),
    ],
)
def test_splits_and_sample_are_those_of_earlier_versions_with_seed_0(
    max_examples: int, fingerprint: str, tmp_path: Path
) -> None:
    run("digits", tmp_path / "out", max_examples=max_examples)
    assert fingerprint_of_format_1(dataset.load(str(tmp_path / "out"))) == fingerprint


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--strict", "dark,no"], "strict='dark,no': 'no' is not a warning"),
        (["--image-size", "4"], "image_size is 4; expected a whole number from 8 to 2048"),
        (["--max-bad-fraction=1"], "max_bad_fraction is 1.0; expected a number from 0"),
        ([], "source 'strict=1' not found"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        main(["strict=1", str(tmp_path / "out"), *words])
    assert str(caught.value).startswith(message)


def test_the_help_has_lines_of_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
