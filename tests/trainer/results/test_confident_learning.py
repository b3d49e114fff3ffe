"""Probable label errors: planted ones are found, and a model that knows nothing flags almost nothing."""

import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest

from trainer.results import confident_learning
from trainer.results.confident_learning import LabelErrors, find

Labels = npt.NDArray[np.int32]
Values = npt.NDArray[np.float32]


def model(truth: Labels, num_classes: int, *, accuracy: float, confidence: float, seed: int = 0) -> Values:
    """Return the probabilities of a model that is right as often as given, and about as sure as given."""
    rng = np.random.default_rng(seed)
    wrong = (truth + rng.integers(1, num_classes, len(truth))) % num_classes
    predicted = np.where(rng.random(len(truth)) < accuracy, truth, wrong)
    highest = np.clip(rng.normal(confidence, 0.05, len(truth)), 0.4, 0.999)
    values = np.repeat(((1 - highest) / (num_classes - 1))[:, None], num_classes, axis=1)
    values[np.arange(len(truth)), predicted] = highest
    return values.astype(np.float32)


def planted(truth: Labels, num_classes: int, fraction: float) -> tuple[Labels, set[int]]:
    """Return labels of which a fraction is wrong, and the positions of these."""
    rng = np.random.default_rng(7)
    chosen = rng.random(len(truth)) < fraction
    other = (truth + rng.integers(1, num_classes, len(truth))) % num_classes
    return np.where(chosen, other, truth).astype(np.int32), set(np.flatnonzero(chosen).tolist())


def classes(num_images: int, num_classes: int) -> Labels:
    return (np.arange(num_images) % num_classes).astype(np.int32)


@pytest.mark.parametrize("num_classes", [2, 10])
def test_planted_errors_are_found(num_classes: int) -> None:
    truth = classes(2000, num_classes)
    labels, wrong = planted(truth, num_classes, 0.05)
    found = find(labels, model(truth, num_classes, accuracy=0.995, confidence=0.95))
    right = wrong & set(found.indices)
    assert len(right) / len(found.indices) >= 0.8
    assert len(right) / len(wrong) >= 0.4
    assert (found.unknown, found.reason) == ((), "")


@pytest.mark.parametrize("num_classes", [2, 10])
@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_a_model_that_guesses_flags_almost_nothing(num_classes: int, confidence: float) -> None:
    truth = classes(600, num_classes)
    found = find(truth, model(truth, num_classes, accuracy=1 / num_classes, confidence=confidence))
    assert len(found.indices) <= 6
    assert found.reason or found.unknown or not found.indices


@pytest.mark.parametrize(
    ("accuracy", "confidence", "reason"),
    [(0.3, 0.99, "No class has"), (0.75, 0.9, "is probably not good enough")],
)
def test_a_weak_model_that_is_sure_of_its_errors_flags_nothing(accuracy: float, confidence: float, reason: str) -> None:
    truth = classes(1000, 10)
    found = find(truth, model(truth, 10, accuracy=accuracy, confidence=confidence))
    assert found.indices == ()
    assert reason in found.reason


def test_a_model_that_is_always_right_flags_nothing() -> None:
    truth = classes(60, 3)
    assert find(truth, np.eye(3, dtype=np.float32)[truth]) == LabelErrors()


def test_the_most_certain_error_comes_first() -> None:
    truth = classes(300, 3)
    probabilities = model(truth, 3, accuracy=1, confidence=0.9)
    labels = truth.copy()
    for position, highest in ((30, 0.97), (60, 0.999), (90, 0.98)):
        labels[position] = (truth[position] + 1) % 3
        probabilities[position] = (1 - highest) / 2
        probabilities[position, truth[position]] = highest
    assert find(labels, probabilities).indices == (60, 90, 30)


@pytest.mark.parametrize("num_images", [0, 1, 49])
def test_few_images_allow_no_judgement(num_images: int) -> None:
    truth = classes(num_images, 2)
    found = find(truth, np.eye(2, dtype=np.float32)[1 - truth].reshape(num_images, 2))
    assert found.indices == ()
    assert f"only {num_images} images" in found.reason


def test_classes_that_the_model_does_not_know_are_not_judged() -> None:
    # Class 2 has too few images, class 3 has none, and class 4 is taken for class 0.
    truth = np.array([0] * 100 + [1] * 100 + [2] * 4 + [4] * 30, np.int32)
    predicted = np.where(truth == 4, 0, truth)
    predicted[200:204] = 1
    found = find(truth, np.eye(5, dtype=np.float32)[predicted] * np.float32(0.95) + np.float32(0.01))
    assert found == LabelErrors(unknown=(2, 3, 4))


def test_a_model_that_knows_no_class_is_no_judge() -> None:
    truth = classes(100, 2)
    found = find(truth, np.eye(2, dtype=np.float32)[1 - truth])
    assert found.indices == ()
    assert found.reason.startswith("No class has")


def test_memory_does_not_grow_by_copies_of_the_probabilities() -> None:
    truth = classes(100_000, 20)
    probabilities = model(truth, 20, accuracy=0.97, confidence=0.9)
    tracemalloc.start()
    find(truth, probabilities)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 100 bytes per image, where a copy in float64 has 160 bytes per image.
    assert peak < 100 * len(truth)


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.95])
def test_it_is_what_cleanlab_finds_in_the_calibrated_probabilities(num_classes: int, confidence: float) -> None:
    # Imported here, because the fast tests do not need it.
    from cleanlab import filter as cleanlab

    truth = classes(1500, num_classes)
    labels, _ = planted(truth, num_classes, 0.1)
    probabilities = model(truth, num_classes, accuracy=0.95, confidence=confidence)
    powers = probabilities.astype(np.float64) ** (1 / confident_learning.temperature(labels, probabilities))
    calibrated = powers / powers.sum(axis=1, keepdims=True)
    flagged = cleanlab.find_label_issues(labels, calibrated, filter_by="confident_learning", n_jobs=1)
    difference = calibrated.max(axis=1) - calibrated[np.arange(len(labels)), labels]
    expected = set(np.flatnonzero(flagged & (difference >= confident_learning.MIN_DIFFERENCE)).tolist())
    found = find(labels, probabilities)
    assert found.unknown == ()
    assert set(found.indices) == expected
    assert expected
