"""Two models on the same images: each as it answers requests, and neither on images that it has seen."""

import errno
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from exact_resume.checkpoints import checkpoints, manifest
from tests.support.forks import fork_module
from trainer.checkpoints import best, seen
from trainer.data import dataset
from trainer.data.images import to_pixels
from trainer.evaluate import evaluate
from trainer.export import export
from trainer.prepare import prepare
from trainer.results import exported
from trainer.results.comparison import comparison, evidence, images
from trainer.results.comparison.decision import Comparison, decide
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.report import comparison as report
from vertex_testing.shared import make_once

pytestmark = pytest.mark.slow
FLAGS = ["--epochs=6", "--global-batch-size=32", "--augment=none", "--xla=off", "--learning-rate=0.01"]
NUM_IMAGES = 400
OTHERS = seen.SeenImages(numbers=np.array([1, 2, 3], np.uint64), hashes=np.zeros((1, 64), np.int8))
"""What a model has seen that was trained on other images."""


def draw(label: int, number: int) -> bytes:
    """Return horizontal or vertical stripes of two pixels, which mostly vanish at half the size."""
    random = np.random.default_rng(number)
    stripe = (np.arange(64) + random.integers(0, 4)) // 2 % 2
    pixels = 88 + 80 * (stripe[:, None] if label else stripe[None, :]) + random.normal(0, 12, (64, 64))
    buffer = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


class Setting:
    """Datasets, runs and models in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def draw(self) -> None:
        """Write the images."""
        for number in range(NUM_IMAGES):
            path = self.folder / "images" / ("columns", "rows")[number % 2] / f"{number:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw(number % 2, number))

    def train(self, image_size: int, name: str, *flags: str, source: str = "images") -> None:
        """Prepare the dataset of a name and train the run of the same name."""
        directory = str(self.folder / f"{name}-data")
        prepare(
            source=str(self.folder / source),
            output_directory=directory,
            report_path=f"{directory}.html",
            image_size=image_size,
        )
        words = [f"--dataset={directory}", f"--checkpoint-directory={self.folder / name}", *FLAGS, *flags]
        done = fork_module("trainer.task", *words)
        assert done.returncode == 0, done.stderr

    def compare(self, name: str, champion: Path, *, min_compared_images: int = 1, source: str = "images") -> Comparison:
        """Compare a run with a champion."""
        data = dataset.load(str(self.folder / f"{name}-data"))
        return comparison.compare(
            data=data,
            chosen=best.find(str(self.folder / name), data),
            checkpoint_directory=str(self.folder / name),
            champion_folder=str(champion),
            source=str(self.folder / source),
            min_compared_images=min_compared_images,
        )


def rename_classes(folder: Path, names: list[str]) -> None:
    """Replace the names in a model's description."""
    path = folder / exported.METADATA_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"class_names": names}))


def replace_by_folder(path: Path) -> None:
    """Put a folder into the place of a file."""
    path.unlink()
    path.mkdir()


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """Two runs, of 64 and 32 pixels, and the export of the first."""

    def make(folder: Path) -> None:
        made = Setting(folder)
        made.draw()
        made.train(64, "fine")
        made.train(32, "coarse")
        export(
            checkpoint_directory=str(folder / "fine"),
            dataset_directory=str(folder / "fine-data"),
            output_directory=str(folder / "champion"),
        )

    return Setting(make_once(tmp_path_factory, "comparison", make))


@pytest.fixture
def foreign(tmp_path: Path) -> Callable[..., Path]:
    """Write a SavedModel with given outputs, as an export has them; it has seen none of the images."""

    def write(
        outputs: Callable[[tf.Tensor], tf.Tensor],
        class_names: tuple[str, ...] = ("rows", "columns"),
        name: str = "images",
        output: str = "probabilities",
    ) -> Path:
        module, folder = tf.Module(), tmp_path / "foreign"
        function = tf.function(lambda images: {output: outputs(images)}, autograph=False).get_concrete_function(
            tf.TensorSpec([None, 48, 48, 3], tf.uint8, name="images")
        )
        module.function = function
        tf.saved_model.save(module, str(folder), signatures={name: function})
        seen.write(folder / exported.SEEN_FILE, OTHERS)
        content = {"class_names": class_names, "image_size": 48}
        (folder / exported.METADATA_FILE).write_text(json.dumps(content))
        return folder

    return write


def always(*names: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """Return probabilities of the first class for every image."""
    scores = [1.0] + [0.0] * (len(names) - 1)
    return lambda images: tf.tile([scores], [tf.shape(images)[0], 1])


def test_a_champion_of_more_pixels_sees_the_originals_and_not_what_is_left_of_them(
    setting: Setting, tmp_path: Path
) -> None:
    """Otherwise the challenger would win by images that were made small before the champion saw them."""
    found = setting.compare("coarse", setting.folder / "champion")
    alone = evaluate(
        dataset_directory=str(setting.folder / "fine-data"),
        checkpoint_directory=str(setting.folder / "fine"),
        report_path=str(tmp_path / "report.html"),
    )
    assert found.has_originals
    assert found.num_left_out == 0
    assert found.table.num_images == alone.num_examples
    assert found.table.champion_accuracy == pytest.approx(alone.accuracy)
    assert alone.accuracy > 0.9
    table = found.table
    sums = [sum(getattr(each, name) for each in found.classes) for name in ("num_images", "champion", "challenger")]
    assert sums == [table.num_images, table.both + table.only_champion, table.both + table.only_challenger]
    # The artefact exists: the small images, enlarged, mislead the champion.
    data = dataset.load(str(setting.folder / "coarse-data"))
    champion = comparison._load_champion(str(setting.folder / "champion"))
    shown, expected = zip(*images.prepared_images(data, evidence.of(data, OTHERS)), strict=True)
    answers = champion.answer([to_pixels(each, champion.image_size) for each in shown])
    misled = np.mean([a == b for a, b in zip(answers, expected, strict=True)])
    assert misled < found.table.champion_accuracy - 0.1
    assert not decide(found.table, max_regression=0.0, must_improve=False, scores=found.scores)[0]


def test_models_of_one_size_see_the_stored_images_and_equal_models_are_equal(setting: Setting) -> None:
    found = setting.compare("fine", setting.folder / "champion", source="no-such-source")
    assert not found.has_originals
    assert (found.table.only_champion, found.table.only_challenger) == (0, 0)


def test_what_an_ancestor_of_the_challenger_has_seen_is_left_out(setting: Setting, tmp_path: Path) -> None:
    """The challenger's own dataset has never been trained on its test images, but the run that it started from has."""
    setting_data = dataset.load(str(setting.folder / "fine-data"))
    ancestor = {record.file_name: record.figures.content_hash for record in setting_data.records("train")}
    is_first = tmp_path / "split"
    for number, path in enumerate(sorted((setting.folder / "images").rglob("*.png"))):
        split = "test" if number % 4 == 0 else "train"
        (is_first / split / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, is_first / split / path.parent.name)
    setting.train(64, "child", f"--weights=run:{setting.folder / 'fine'}", "--max-steps=2", source=str(is_first))
    innocent = tmp_path / "champion"
    shutil.copytree(setting.folder / "champion", innocent)
    seen.write(innocent / exported.SEEN_FILE, OTHERS)
    found = setting.compare("child", innocent)
    child = dataset.load(str(setting.folder / "child-data"))
    known = set(ancestor.values()) | {each.figures.content_hash for each in setting_data.records("validation")}
    leaked = [each for each in child.records("test") if each.figures.content_hash in known]
    assert len(leaked) > 50
    assert found.num_left_out == len(leaked)
    assert found.table.num_images == child.num_examples["test"] - len(leaked)
    with pytest.raises(NotComparable, match=f"only {found.table.num_images} test images were seen by neither model"):
        setting.compare("child", innocent, min_compared_images=found.table.num_images + 1)


def test_a_champion_that_cannot_be_read_now_fails_the_step_so_that_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a bucket that is unavailable for a moment would keep the new model from being promoted."""
    unavailable = OSError(errno.EIO, "unavailable", "gs://bucket/champion")
    monkeypatch.setattr(comparison.saved_model, "load", mock.Mock(side_effect=unavailable))
    with pytest.raises(OSError, match="unavailable"):
        comparison._load_champion("gs://bucket/champion")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Rows", "Columns"), "'Columns' (now 'columns'), 'Rows' (now 'rows'); rename the folders back"),
        (("rows", "col-umns "), "'col-umns ' (now 'columns')"),
        (("rows", "\uff43olumns"), "'\\uff43olumns' (now 'columns')"),
        (("cats", "dogs"), "the dataset has 0 of the champion's 2 classes"),
        # On the images of one class, a model that always answers it wins.
        (("rows", "dogs"), "the dataset has 1 of the champion's 2 classes and 1 others ('columns'), but not 'dogs'"),
        (("rows", "columns", *map(str, range(18))), "has 2 of the champion's 20 classes, but not '0', '1',"),
    ],
)
def test_a_champion_of_other_classes_is_not_compared(
    setting: Setting, foreign: Callable[..., Path], names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(NotComparable, match=re.escape(message)) as error:
        setting.compare("coarse", foreign(always(*names), names))
    assert "\n" not in str(error.value)


def test_images_of_a_new_class_are_left_out_and_counted(
    setting: Setting, foreign: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(setting.folder / "images", tmp_path / "images")
    (tmp_path / "images" / "dots").mkdir()
    for number in range(90):
        (tmp_path / "images" / "dots" / f"{number}.png").write_bytes(draw(number % 2, 1000 + number))
    own = Setting(tmp_path)
    own.train(32, "three", "--max-steps=2", "--metric=macro-f1")
    data = dataset.load(str(tmp_path / "three-data"))
    num_test = Counter(data.class_names[record.label] for record in data.records("test"))
    found = own.compare("three", foreign(always("rows", "columns")))
    assert found.unknown == {"dots": num_test["dots"]}
    assert found.table.num_images == num_test["rows"] + num_test["columns"]
    assert report.metrics(found)["num_unknown_to_champion"] == num_test["dots"] > 2
    assert f"{num_test['dots']} more left out: the champion does not know the classes 'dots'" in capsys.readouterr().out
    assert found.scores.metric == "macro-f1"
    share = num_test["rows"] / found.table.num_images
    assert found.scores.champion == pytest.approx(share / (1 + share))
    with pytest.raises(NotComparable, match=f"only {found.table.num_images} test images of classes that both models"):
        own.compare("three", tmp_path / "foreign", min_compared_images=found.table.num_images + 1)
    shutil.rmtree(tmp_path / "foreign")
    # It knew the dots as spots.
    names = ("spots", "rows", "columns")
    with pytest.raises(NotComparable, match=r"2 of the champion's 3 classes and 1 others \('dots'\), but not 'spots'"):
        own.compare("three", foreign(always(*names), names))


def test_a_champion_is_not_replaced_after_two_folders_were_exchanged(setting: Setting, tmp_path: Path) -> None:
    own = Setting(tmp_path)
    for name, other in (("rows", "columns"), ("columns", "rows")):
        shutil.copytree(setting.folder / "images" / name, tmp_path / "images" / other)
    own.train(64, "fine")
    with pytest.raises(NotComparable) as refused:
        own.compare("fine", setting.folder / "champion")
    assert "the champion knows 'columns' as 'rows', 'rows' as 'columns', and has accuracy" in str(refused.value)
    assert refused.value.is_final


def test_a_champion_that_has_fallen_is_shown_on_its_own_test_images(
    setting: Setting, foreign: Callable[..., Path]
) -> None:
    """It was made for other images; on those that it was tested on, the new model may be worse."""
    champion = foreign(always("columns", "rows"), ("columns", "rows"))
    data = dataset.load(str(setting.folder / "coarse-data"))
    tested = [
        record.figures.content_hash for record in data.records("test") if data.class_names[record.label] != "rows"
    ]
    metadata = champion / exported.METADATA_FILE

    def compared(**record: object) -> Comparison:
        metadata.write_text(json.dumps({"class_names": ["columns", "rows"], "image_size": 48} | record))
        return setting.compare("coarse", champion)

    assert compared().fall is None
    assert compared(metric="accuracy", score="0.9").fall is None
    assert compared(metric="accuracy", score=0.5).fall is None
    fallen = compared(metric="accuracy", score=0.99).fall
    assert fallen is not None
    assert str(fallen).endswith("none of its own test images is left")
    numbers = np.unique(seen.numbers(tested))
    (champion / exported.TESTED_FILE).write_bytes(numbers.astype(exported.TESTED_TYPE).tobytes() + b"odd")
    found = compared(metric="accuracy", score=0.99)
    assert found.fall is not None
    (of_columns,) = (each for each in found.classes if each.class_name == "columns")
    assert found.fall.num_own == len(tested) == of_columns.num_images
    assert found.fall.own == (1.0, of_columns.challenger / of_columns.num_images)
    assert found.fall.now == found.table.champion_accuracy
    assert report.metrics(found)["champion_recorded_score"] == 0.99


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            lambda images: tf.fill([tf.shape(images)[0], 2], np.nan),
            "the champion returns probabilities that are not finite",
        ),
        # One answer for all images.
        (lambda images: tf.constant([[1.0, 0.0]]), "probabilities of shape (1, 2), not (32, 2)"),
        (always("rows"), "probabilities of shape (32, 1), not (32, 2)"),
        (always("rows", "columns", "waves"), "probabilities of shape (32, 3), not (32, 2)"),
    ],
)
def test_a_champion_with_unusable_answers_is_not_compared(
    setting: Setting, foreign: Callable[..., Path], outputs: Callable[[tf.Tensor], tf.Tensor], message: str
) -> None:
    """Its answers would count as wrong, and any model would replace it."""
    with pytest.raises(NotComparable, match=re.escape(message)):
        setting.compare("coarse", foreign(outputs))


def test_a_challenger_with_scores_that_are_not_finite_is_not_compared(setting: Setting, tmp_path: Path) -> None:
    """It answers its first class for every image."""
    for name in ("coarse", "coarse-data", "images"):
        shutil.copytree(setting.folder / name, tmp_path / name)
    data = dataset.load(str(tmp_path / "coarse-data"))
    chosen = best.find(str(tmp_path / "coarse"), data).checkpoint
    for array in chosen.arrays:
        array[...] = np.nan if array.dtype.kind == "f" else array
    shutil.rmtree(tmp_path / "coarse" / manifest.name(chosen.step))
    checkpoints.save(str(tmp_path / "coarse"), chosen)
    with pytest.raises(NotComparable, match="the new model returns probabilities that are not finite"):
        Setting(tmp_path).compare("coarse", setting.folder / "champion")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no exported model"),
        (lambda folder: (folder / "saved_model.pb").write_bytes(b"x"), "cannot be evaluated"),
        (lambda folder: (folder / "variables" / "variables.index").unlink(), "cannot be evaluated"),
        (lambda folder: (folder / exported.METADATA_FILE).write_text("{}"), "is damaged"),
        (lambda folder: (folder / exported.METADATA_FILE).write_text("[" * 100_000), "no exported model"),
        (lambda folder: (folder / exported.METADATA_FILE).write_bytes(b"\xff{"), "no exported model"),
        (lambda folder: (folder / exported.METADATA_FILE).unlink(), "no exported model"),
        (lambda folder: replace_by_folder(folder / exported.METADATA_FILE), "cannot be evaluated"),
        (lambda folder: rename_classes(folder, ["rows", "rows"]), "is damaged"),
        (lambda folder: rename_classes(folder, ["rows", "columns", " "]), "is damaged"),
        (lambda folder: rename_classes(folder, []), "is damaged"),
        # The names that it answers with are others.
        (lambda folder: rename_classes(folder, ["rows", "columns", "x"][1:]), "1 of the champion's 2 classes"),
        (lambda folder: (folder / exported.SEEN_FILE).unlink(), "which images the champion has seen"),
        (lambda folder: (folder / exported.SEEN_FILE).write_bytes(b""), "which images the champion has seen"),
        (lambda folder: (folder / exported.SEEN_FILE).write_bytes(b"1" * 15), "which images the champion has seen"),
    ],
)
def test_a_champion_that_cannot_be_evaluated_has_a_reason(
    setting: Setting, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    shutil.copytree(setting.folder / "champion", tmp_path / "champion")
    damage(tmp_path / "champion")
    with pytest.raises(NotComparable, match=message):
        setting.compare("coarse", tmp_path / "champion")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"name": "serving_default"}, "it has no signature images"),
        ({"output": "scores"}, "the champion cannot be evaluated: 'probabilities'"),
    ],
)
def test_a_champion_of_another_signature_has_a_reason(
    setting: Setting, foreign: Callable[..., Path], names: dict[str, str], message: str
) -> None:
    with pytest.raises(NotComparable, match=message):
        setting.compare("coarse", foreign(always("rows", "columns"), **names))


def test_a_challenger_of_unknown_descent_has_a_reason(setting: Setting, tmp_path: Path) -> None:
    copy = Setting(tmp_path)
    for name in ("coarse", "coarse-data", "images"):
        shutil.copytree(setting.folder / name, tmp_path / name)
    (tmp_path / "coarse" / seen.FILE).unlink()
    with pytest.raises(NotComparable, match="which images the new model has seen"):
        copy.compare("coarse", setting.folder / "champion")
