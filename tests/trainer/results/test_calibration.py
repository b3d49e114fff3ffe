"""The temperature of predictions whose temperature is known, and of those that have none."""

import json
import math
from pathlib import Path

import keras
import numpy as np
import pytest

from trainer.results import calibration, saved_model
from trainer.results.predictions import Predictions


def predictions(labels: object, probabilities: object) -> Predictions:
    """Predictions on a validation split."""
    return Predictions(
        split="validation", labels=np.asarray(labels, np.int32), probabilities=np.asarray(probabilities, np.float32)
    )


def sample(temperature: float, *, num_images: int = 6_000, num_classes: int = 4) -> Predictions:
    """Predictions that are right as often as they say at that temperature, as the labels are drawn from them."""
    random = np.random.default_rng(3)
    logits = random.normal(size=(num_images, num_classes)) * 2
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (random.random((num_images, 1)) > true.cumsum(axis=1)).sum(axis=1)
    sharp = np.exp(logits * temperature)
    return predictions(labels, sharp / sharp.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_of_predictions_is_found(temperature: float) -> None:
    found = sample(temperature)
    fitted = calibration.fit(found)
    assert fitted == pytest.approx(temperature, rel=0.05)
    assert calibration.fit(found) == fitted

    def loss(at: float) -> float:
        logits = np.log(found.probabilities.astype(np.float64)) / at
        own = logits[np.arange(len(logits)), found.labels]
        return float((np.log(np.exp(logits).sum(axis=1)) - own).mean())

    assert loss(fitted) < min(loss(fitted * 1.01), loss(fitted / 1.01))


def test_a_temperature_makes_the_calibration_error_of_other_images_smaller() -> None:
    found = sample(3.0)
    first, second = (predictions(found.labels[half::2], found.probabilities[half::2]) for half in (0, 1))
    served = predictions(second.labels, calibration.apply(second.probabilities, calibration.fit(first)))
    assert calibration.expected_error(served) < 0.03 < 0.15 < calibration.expected_error(second)


NO_TEMPERATURE = {
    "no mistakes": predictions([0] * 100, [[0.9, 0.1]] * 100),
    "no mistakes, no doubt": predictions([0] * 100, [[1.0, 0.0]] * 100),
    "only mistakes": predictions([1] * 100, [[0.9, 0.1]] * 100),
    "too few images": predictions([0] * 39 + [1] * 10, [[0.9, 0.1]] * 49),
    "constant": predictions([0] * 60 + [1] * 40, [[0.5, 0.5]] * 100),
    "as good as a guess": predictions([0] * 50 + [1] * 50, [[0.9, 0.1]] * 100),
    "one class": predictions([0] * 100, [[1.0]] * 100),
    "one image": predictions([1], [[0.9, 0.1]]),
}


@pytest.mark.parametrize("found", NO_TEMPERATURE.values(), ids=NO_TEMPERATURE)
def test_a_split_that_determines_no_temperature_is_said_in_one_line(
    found: Predictions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibration.fit(found) == 1.0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("notice: the probabilities are not calibrated: ")
    assert printed.out.count("\n") == 1


@pytest.mark.parametrize("num_mistakes", [1, 10])
def test_fifty_images_with_a_mistake_determine_a_temperature(num_mistakes: int) -> None:
    num_right = 50 - num_mistakes
    found = calibration.fit(predictions([0] * num_right + [1] * num_mistakes, [[0.9, 0.1]] * 50))
    # As certain as it is right.
    assert found == pytest.approx(math.log(9) / math.log(num_right / num_mistakes), abs=1e-4)


def test_probabilities_at_a_temperature() -> None:
    given = np.array([[0.64, 0.36], [1.0, 0.0], [1e-40, 1.0], [0.5, 0.5]], np.float32)
    found = calibration.apply(given, 2.0)
    assert found[0] == pytest.approx([0.8 / 1.4, 0.6 / 1.4], rel=1e-6)
    assert found[1:] == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), abs=1e-6)
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    for temperature in (0.11, 0.7, 1.0, 9.0):
        assert (calibration.apply(given, temperature).argmax(axis=1) == given.argmax(axis=1)).all()
    assert calibration.apply(given, 1.0) == pytest.approx(given.astype(float), abs=1e-7)
    assert np.isnan(calibration.apply(np.array([[np.nan, 1.0]], np.float32), 2.0)).all()


def test_the_calibration_error_of_known_predictions() -> None:
    # Two bins with two images each: (12/15, 13/15] and (10/15, 11/15].
    found = predictions([0, 1, 0, 1], [[0.85, 0.15], [0.81, 0.19], [0.7, 0.3], [0.28, 0.72]])
    first, second = abs(0.85 + 0.81 - 1), abs(0.7 + 0.72 - 2)
    assert calibration.expected_error(found) == pytest.approx((first + second) / 4, rel=1e-6)
    assert calibration.expected_error(predictions([0], [[1.0, 0.0]])) == 0.0
    assert calibration.expected_error(predictions([1], [[1.0, 0.0]])) == 1.0
    # As float32, softmax may return a little more than 1.
    assert calibration.expected_error(predictions([0, 0], [[1.0000001, 0.0], [1.0, 0.0]])) == pytest.approx(0, abs=1e-6)


def test_the_calibration_error_is_that_of_its_definition() -> None:
    found = sample(2.0, num_images=500)
    confidence, right = found.probabilities.max(axis=1), found.probabilities.argmax(axis=1) == found.labels
    expected = 0.0
    for number in range(15):
        inside = (confidence > number / 15) & (confidence <= (number + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert calibration.expected_error(found) == pytest.approx(expected, rel=1e-5)


def network() -> keras.Model:
    """A network of 8 pixels that returns the red, green and blue of the first pixel, in 255ths, as probabilities."""
    images = keras.Input((8, 8, 3), dtype="uint8")
    return keras.Model(images, keras.ops.cast(images[:, 0, 0, :], "float32") / 255.0)


def export(folder: Path, **metadata: float) -> saved_model.LoadedModel:
    """Write and load the network."""
    saved_model.write(
        network(), str(folder), class_names=["a", "b", "c"], image_size=8, metadata=metadata, seen_images=None
    )
    return saved_model.load(str(folder))


def first_pixels(*pixels: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """Call's arguments for images with such a first pixel."""
    images = np.zeros((len(pixels), 8, 8, 3), np.uint8)
    images[:, 0, 0] = pixels
    return {"images": images}


def test_the_exported_graph_applies_the_temperature(tmp_path: Path) -> None:
    given = first_pixels((204, 51, 0), (0, 255, 0), (51, 51, 153))
    plain, hot = export(tmp_path / "plain"), export(tmp_path / "hot", temperature=2.0)
    answer = {name: value.numpy() for name, value in plain.loaded.signatures["images"](**given).items()}
    assert answer["probabilities"] == pytest.approx(np.array([[0.8, 0.2, 0], [0, 1, 0], [0.2, 0.2, 0.6]]), abs=1e-6)
    assert answer["label"].tolist() == [b"a", b"b", b"c"]
    answer = {name: value.numpy() for name, value in hot.loaded.signatures["images"](**given).items()}
    roots = np.sqrt([0.2, 0.2, 0.6])
    assert answer["probabilities"] == pytest.approx(
        np.array([[2 / 3, 1 / 3, 0], [0, 1, 0], roots / roots.sum()]), abs=1e-6
    )
    assert answer["label"].tolist() == [b"a", b"b", b"c"]
    assert json.loads((tmp_path / "hot" / "assets.extra" / "model.json").read_text())["temperature"] == 2.0


def test_values_that_are_not_finite_are_not_hidden_by_the_temperature(tmp_path: Path) -> None:
    images = keras.Input((8, 8, 3), dtype="uint8")
    values = keras.ops.cast(images[:, 0, 0, :], "float32")
    model = keras.Model(images, values / values)
    saved_model.write(
        model, str(tmp_path), class_names=["a", "b", "c"], image_size=8, metadata={"temperature": 2.0}, seen_images=None
    )
    answer = saved_model.load(str(tmp_path)).loaded.signatures["images"](**first_pixels((1, 0, 1)))
    assert not np.isfinite(answer["probabilities"].numpy()).all()
