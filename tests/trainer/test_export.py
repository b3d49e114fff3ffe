"""Evaluation, export and prediction agree, even in processes that know only the exported folder."""

import html
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from tests.support.modules import call_module, run_module
from trainer.checkpoints import starting_weights
from trainer.command_line import TrainingError
from trainer.data import batches
from trainer.data.dataset import Dataset
from trainer.data.sources import factory as digits_source
from trainer.evaluate import evaluate
from trainer.export import export
from trainer.prepare import prepare
from trainer.results import calibration, saved_model
from trainer.results.evaluation import Evaluation
from trainer.results.predictions import Predictions

FRESH = """
import json, sys
import numpy as np, tensorflow as tf, tensorflow_datasets as tfds
model = tf.saved_model.load(sys.argv[1])
source = tfds.builder_from_directory(sys.argv[2]).as_data_source(
    split="test", decoders={"image": tfds.decode.SkipDecoding()})
images, labels = zip(*[(e["image"], e["label"]) for e in source])
answer = model.signatures["serving_default"](image_bytes=tf.constant(list(images)))
names = json.load(open(sys.argv[1] + "/assets.extra/model.json"))["class_names"]
answered = [label.decode() for label in answer["label"].numpy()]
assert answered == [names[k] for k in answer["probabilities"].numpy().argmax(axis=1)]
print(json.dumps(float(np.mean([names[label] == found for label, found in zip(labels, answered)]))))
"""


@pytest.fixture(scope="module")
def evaluation(
    digits_directory: Path, trained_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Evaluation, Path]:
    """The evaluation of the short run, and its report."""
    report = tmp_path_factory.mktemp("evaluation") / "report.html"
    result = evaluate(
        dataset_directory=str(digits_directory),
        checkpoint_directory=str(trained_directory),
        report_path=str(report),
        predictions_path=str(report.with_name("predictions.jsonl")),
    )
    return result, report


@pytest.fixture(scope="module")
def exported(digits_directory: Path, trained_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported model of the short run."""
    folder = tmp_path_factory.mktemp("export") / "model"
    metadata = export(
        checkpoint_directory=str(trained_directory),
        dataset_directory=str(digits_directory),
        output_directory=str(folder),
    )
    assert metadata["served_difference"] <= 1e-4
    return folder


@pytest.mark.slow
def test_a_fresh_process_gets_the_reported_accuracy_from_the_exported_model(
    evaluation: tuple[Evaluation, Path], exported: Path, digits_directory: Path
) -> None:
    command = [sys.executable, "-c", FRESH, str(exported), str(digits_directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == pytest.approx(evaluation[0].accuracy)


@pytest.mark.slow
def test_the_exported_model_starts_a_training_with_the_weights_of_its_run(
    exported: Path, trained_directory: Path
) -> None:
    run, model = starting_weights.of_run(str(trained_directory)), saved_model.starting_weights(str(exported))
    assert (model.model, model.class_names) == ("convnet", tuple("0123456789"))
    assert model.digest == run.digest
    (exported / "variables" / "variables.index").rename(exported / "variables" / "moved")
    with pytest.raises(UserError, match=r"is damaged .*; export it again"):
        saved_model.starting_weights(str(exported))
    (exported / "variables" / "moved").rename(exported / "variables" / "variables.index")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("variables/variables.data-00000-of-00001", "x", "Read less bytes"),
        ("variables/variables.index", "", "too short"),
        ("assets.extra/model.json", '{"class_names": ["cat"], "image_size": 16}', "its network has no name"),
        (
            "assets.extra/model.json",
            '{"class_names": [["cat"]], "image_size": 16, "model": "m"}',
            "no class_names that all differ",
        ),
    ],
)
def test_a_damaged_export_is_no_start_of_a_training(
    exported: Path, tmp_path: Path, name: str, content: str, message: str
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(exported, copy)
    (copy / name).write_text(content)
    with pytest.raises(UserError, match=rf"is damaged \(.*{message}.*; export it again"):
        saved_model.starting_weights(str(copy))


def test_the_checkpoint_that_is_evaluated_was_chosen_on_validation(
    evaluation: tuple[Evaluation, Path], trained_directory: Path, digits: Dataset
) -> None:
    result = json.loads((trained_directory / "result.json").read_text())
    assert f"{result['validation_accuracy']:.2%}" in evaluation[1].read_text()
    assert evaluation[0].num_examples == digits.num_examples["test"]
    matrix = np.asarray(evaluation[0].confusion_matrix)
    assert matrix.sum() == evaluation[0].num_examples
    assert np.trace(matrix) / matrix.sum() == pytest.approx(evaluation[0].accuracy)


def test_the_predictions_are_those_that_the_accuracy_is_of(
    evaluation: tuple[Evaluation, Path], digits: Dataset
) -> None:
    text = evaluation[1].with_name("predictions.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for split in ("validation", "test"):
        names = [line["file_name"] for line in lines if line["split"] == split]
        assert names == [record.file_name for record in digits.records(split)]
    right = [line["label"] == line["predicted"] for line in lines if line["split"] == "test"]
    assert np.mean(right) == pytest.approx(evaluation[0].accuracy)


def test_a_model_with_one_answer_is_no_better_than_the_baseline_and_each_other_class_is_a_warning(
    digits: Dataset, digits_directory: Path, trained_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {name: digits.statistics["counts"][name] for name in digits.class_names}
    frequent = max(counts, key=lambda name: counts[name]["train"])
    real = batches.predict

    def predict(model: Any, loaded: Any) -> Any:
        return np.roll(np.sort(real(model, loaded), axis=1), digits.class_names.index(frequent) + 1, axis=1)

    monkeypatch.setattr(batches, "predict", predict)
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained_directory}"]
    done = call_module("trainer.evaluate", *words, f"--report={tmp_path}/report.html")
    assert done.returncode == 0, done.stderr
    tested = {name: each["test"] for name, each in counts.items() if each["test"] and name != frequent}
    assert len(tested) == 9
    named = ", ".join(map(repr, sorted(tested)[:5]))
    assert f"warning: no test image is classified as {named} and 4 more; the report marks all" in done.stderr
    accuracy = counts[frequent]["test"] / digits.num_examples["test"]
    for line in (f"accuracy: {accuracy:g}", f"baseline_accuracy: {accuracy:g}", f"baseline_class: {frequent}"):
        assert line in done.stdout.splitlines()
    assert f"test accuracy ({accuracy:.2%} by always answering '{frequent}')" in html.unescape(
        (tmp_path / "report.html").read_text()
    )


@pytest.mark.parametrize(("place", "split"), [(1, "validation"), (2, "test")])
def test_predictions_that_are_not_finite_are_neither_judged_nor_scored_and_fit_no_temperature(
    digits: Dataset,
    digits_directory: Path,
    trained_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
    split: str,
) -> None:
    real, calls = batches.predict, []

    def predict(model: Any, loaded: Any) -> Any:
        found = real(model, loaded).copy()
        calls.append(found)
        if len(calls) == place:
            found[3, 1] = np.nan
        return found

    monkeypatch.setattr(batches, "predict", predict)
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained_directory}"]
    done = call_module("trainer.evaluate", *words, f"--report={tmp_path}/report.html")
    message = f"the model predicts values that are not finite for 1 of {digits.num_examples[split]} {split} images"
    lines = [line for line in done.stderr.splitlines() if "no test image is classified as" not in line]
    assert len(lines) == done.stderr.count(message) == 1
    assert done.returncode == 1
    assert "accuracy: " not in done.stdout
    assert "temperature" not in done.stdout
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_one_temperature_of_the_validation_split_is_in_the_predictions_the_report_and_the_exported_model(
    evaluation: tuple[Evaluation, Path],
    digits: Dataset,
    digits_directory: Path,
    trained_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def fit(found: Predictions) -> float:
        asked.append(found.split)
        # The split of the tests is too small to determine one.
        return 2.0

    monkeypatch.setattr(calibration, "fit", fit)
    run = {"checkpoint_directory": str(trained_directory), "dataset_directory": str(digits_directory)}
    files = {"report_path": str(tmp_path / "report.html"), "predictions_path": str(tmp_path / "predictions.jsonl")}
    result = evaluate(**run, **files)
    assert export(**run, output_directory=str(tmp_path / "model"))["temperature"] == 2.0
    assert asked == ["validation", "validation"]
    assert json.loads((tmp_path / "model" / "assets.extra" / "model.json").read_text())["temperature"] == 2.0
    assert "<b>2.0000</b>" in (tmp_path / "report.html").read_text()
    # What judges a model is the same with and without a temperature.
    assert evaluation[0].metrics["temperature"] == 1.0
    assert result.metrics["calibration_error"] != result.metrics["uncalibrated_error"]
    changed = ("temperature", "calibration_error")
    assert {name: value for name, value in result.metrics.items() if name not in changed} == {
        name: value for name, value in evaluation[0].metrics.items() if name not in changed
    }
    lines = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    given = [(line["predicted"], line["probability"]) for line in lines if line["split"] == "test"]
    model = saved_model.load(str(tmp_path / "model"))
    served = model.predict(np.stack([each.pixels() for each in digits.records("test")]))
    assert [digits.class_names[index] for index in served.argmax(axis=1)] == [name for name, _ in given]
    assert np.abs(served.max(axis=1) - [probability for _, probability in given]).max() <= 1e-5


def test_only_what_is_needed_is_in_the_exported_folder(exported: Path, trained_directory: Path) -> None:
    found = sorted(str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file())
    others = [name for name in found if not name.startswith("variables/")]
    extra = [
        f"assets.extra/{name}" for name in ("model.json", "seen_images", "seen_images_perceptual", "tested_images")
    ]
    assert others == [*extra, "fingerprint.pb", "saved_model.pb"]
    for path in extra[1:-1]:
        assert (exported / path).read_bytes() == (trained_directory / os.path.basename(path)).read_bytes()


def test_a_folder_in_use_is_not_overwritten(exported: Path, digits_directory: Path, trained_directory: Path) -> None:
    with pytest.raises(UserError, match="exists and is not empty"):
        export(
            checkpoint_directory=str(trained_directory),
            dataset_directory=str(digits_directory),
            output_directory=str(exported),
        )


@pytest.mark.slow
def test_an_export_with_other_probabilities_does_not_appear(
    digits_directory: Path, trained_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = saved_model.write

    def write_otherwise(*arguments: Any, metadata: dict[str, Any], **options: Any) -> None:
        write(*arguments, metadata=metadata | {"temperature": metadata["temperature"] * 1.2}, **options)

    monkeypatch.setattr(saved_model, "write", write_otherwise)
    with pytest.raises(TrainingError, match="its probabilities differ from the network's"):
        export(
            checkpoint_directory=str(trained_directory),
            dataset_directory=str(digits_directory),
            output_directory=str(tmp_path / "model"),
        )
    assert os.listdir(tmp_path) == []


def test_another_dataset_is_refused(trained_directory: Path, tmp_path: Path) -> None:
    prepare(
        source="digits",
        output_directory=str(tmp_path / "other"),
        report_path=str(tmp_path / "other.html"),
        image_size=16,
        max_examples=100,
    )
    with pytest.raises(UserError, match="give the run's own dataset"):
        evaluate(
            dataset_directory=str(tmp_path / "other"),
            checkpoint_directory=str(trained_directory),
            report_path=str(tmp_path / "x.html"),
        )
    assert not (tmp_path / "x.html").exists()


@pytest.mark.slow
def test_predict_names_the_class_of_images_and_refuses_other_files(exported: Path, tmp_path: Path) -> None:
    digits_source.write_digits(str(tmp_path / "digits"))
    (tmp_path / "text.png").write_text("not an image")
    paths = [
        str(tmp_path / "digits" / str(digit) / sorted(os.listdir(tmp_path / "digits" / str(digit)))[0])
        for digit in (0, 6)
    ]
    good = run_module("trainer.predict", str(exported), *paths)
    assert good.returncode == 0, good.stderr
    assert [line.split(": ")[0] for line in good.stdout.splitlines()] == paths
    assert all("%" in line for line in good.stdout.splitlines())
    # Without an image it asks for one, so that the command works as it is pasted.
    words = [sys.executable, "-m", "trainer.predict", str(exported)]
    asked = subprocess.run(words, input=f"{paths[1]}\n", capture_output=True, text=True)
    assert (asked.returncode, asked.stdout.splitlines()) == (0, [f"Image file: {good.stdout.splitlines()[1]}"])
    for typed in ("", "\n"):
        asked = subprocess.run(words, input=typed, capture_output=True, text=True)
        assert (asked.returncode, "expected at least one" in asked.stderr) == (2, True), asked.stderr
    mixed = call_module("trainer.predict", str(exported), str(tmp_path / "text.png"), paths[0], str(tmp_path / "gone"))
    assert mixed.returncode == 2
    assert "text.png: not an image" in mixed.stderr
    assert "gone: cannot be read" in mixed.stderr
    assert mixed.stdout.startswith(paths[0])
    assert "Traceback" not in mixed.stderr


@pytest.mark.slow
def test_predict_reads_what_tensorflow_cannot_decode(exported: Path, tmp_path: Path) -> None:
    Image.new("CMYK", (40, 30)).save(tmp_path / "x.tiff")
    Image.fromarray(np.full((9, 9), 60_000, np.uint16)).save(tmp_path / "deep.png")
    done = call_module("trainer.predict", str(exported), str(tmp_path / "x.tiff"), str(tmp_path / "deep.png"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_predict_refuses_a_folder_that_is_not_a_model(tmp_path: Path) -> None:
    done = call_module("trainer.predict", str(tmp_path), "x.png")
    assert done.returncode == 2
    assert "no exported model at" in done.stderr


@pytest.mark.slow
def test_the_command_lines_print_what_the_functions_return(
    digits_directory: Path, trained_directory: Path, tmp_path: Path
) -> None:
    run = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained_directory}"]
    done = call_module("trainer.evaluate", *run, f"--report={tmp_path / 'report.html'}")
    assert done.returncode == 0, done.stderr
    assert "accuracy: " in done.stdout
    assert Path(tmp_path / "report.html").read_text().startswith("<!doctype html>")
    done = call_module("trainer.evaluate", f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path}")
    assert done.returncode == 2
    assert "no checkpoint in" in done.stderr
