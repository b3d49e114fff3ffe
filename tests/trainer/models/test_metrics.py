"""The metrics against scikit-learn's, and their edge cases."""

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from trainer.models.metrics import METRICS, confusion_matrix, score

_SKLEARN = {
    "accuracy": sklearn_metrics.accuracy_score,
    "balanced-accuracy": sklearn_metrics.balanced_accuracy_score,
    "macro-f1": lambda labels, predicted: sklearn_metrics.f1_score(labels, predicted, average="macro"),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(5))
def test_a_metric_is_scikit_learns(metric: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.choice(4, 300, p=[0.7, 0.2, 0.07, 0.03])
    predicted = np.where(random.random(300) < 0.6, labels, random.integers(0, 4, 300))
    assert score(metric, confusion_matrix(labels, predicted, 4)) == pytest.approx(_SKLEARN[metric](labels, predicted))


@pytest.mark.parametrize(("metric", "expected"), [("accuracy", 0.5), ("balanced-accuracy", 0.5), ("macro-f1", 2 / 3)])
def test_a_class_without_an_example_does_not_count_but_an_answer_of_it_is_wrong(metric: str, expected: float) -> None:
    assert score(metric, confusion_matrix(np.array([0, 0]), np.array([0, 2]), 3)) == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_without_an_example_every_score_is_zero(metric: str) -> None:
    assert score(metric, np.zeros((3, 3), np.int64)) == 0
