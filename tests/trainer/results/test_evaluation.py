"""Metrics of predictions whose metrics are known."""

import numpy as np
import pytest

from trainer.results.evaluation import score


def test_scores_of_known_predictions() -> None:
    labels = np.array([0, 0, 1, 1], np.int32)
    probabilities = np.array([[0.9, 0.1, 0], [0.4, 0.6, 0], [0.2, 0.8, 0], [0.1, 0.9, 0]], np.float32)
    found = score(labels, probabilities, ["a", "b", "c"])
    assert found.accuracy == 0.75
    assert found.confusion_matrix == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert found.loss == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.9]).mean(), rel=1e-5)
    assert (found.class_scores[1].precision, found.class_scores[1].recall) == (pytest.approx(2 / 3), 1.0)
    # The class without test images does not lower the averages.
    assert found.metrics["macro_recall"] == 0.75
