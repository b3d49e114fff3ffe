"""Metrics of predictions whose metrics are known."""

import numpy as np
import pytest

from trainer.results.evaluation import Evaluation, score


def test_scores_of_known_predictions() -> None:
    labels = np.array([0, 0, 1, 1], np.int32)
    probabilities = np.array([[0.9, 0.1, 0], [0.4, 0.6, 0], [0.2, 0.8, 0], [0.1, 0.9, 0]], np.float32)
    found = score(labels, probabilities, ["a", "b", "c"], train_counts=[1, 2, 3])
    assert found.accuracy == 0.75
    assert found.confusion_matrix == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert found.loss == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.9]).mean(), rel=1e-5)
    assert (found.class_scores[1].precision, found.class_scores[1].recall) == (pytest.approx(2 / 3), 1.0)
    # The class without test images does not lower the averages.
    assert found.metrics["balanced_accuracy"] == 0.75


def _answers(labels: list[int], answers: list[int], counts: list[int], metric: str = "accuracy") -> Evaluation:
    probabilities = np.eye(3, dtype=np.float32)[answers] * 0.9 + 0.03
    return score(np.array(labels, np.int32), probabilities, ["a", "b", "c"], train_counts=counts, metric=metric)


def test_the_baseline_answers_the_most_frequent_class_of_the_training_split() -> None:
    # In the test split another class is the most frequent one.
    found = _answers([0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [7, 4, 0])
    assert (found.baseline_class, found.baseline_accuracy, found.baseline_score) == ("a", 0.4, 0.4)
    assert (found.metric, found.score) == ("accuracy", found.accuracy) == ("accuracy", 0.8)
    assert found.metrics["baseline_accuracy"] == 0.4
    assert found.metrics["baseline_class"] == "a"
    assert list(found.metrics)[:2] == ["accuracy", "baseline_accuracy"]


def test_of_equally_frequent_classes_the_first_is_the_baseline() -> None:
    assert _answers([0, 1], [0, 1], [3, 5, 5]).baseline_class == "b"


@pytest.mark.parametrize(("metric", "baseline"), [("balanced-accuracy", 0.5), ("macro-f1", 0.4)])
def test_another_metric_has_a_baseline_of_its_own(metric: str, baseline: float) -> None:
    found = _answers([0, 0, 1], [0, 0, 0], [9, 1, 0], metric)
    assert (found.metric, found.score) == (metric, found.baseline_score) == (metric, pytest.approx(baseline))
    assert found.metrics[f"baseline_{metric.replace('-', '_')}"] == found.baseline_score
    assert found.metrics["baseline_accuracy"] == found.baseline_accuracy == pytest.approx(2 / 3)
    assert found.metrics[metric.replace("-", "_")] == pytest.approx(found.score)


def test_a_class_that_is_never_predicted_is_named_unless_it_has_no_test_image() -> None:
    assert _answers([0, 0, 1], [0, 0, 0], [9, 1, 1]).never_predicted == ["b"]
    assert _answers([0, 0, 1], [0, 1, 0], [9, 1, 1]).never_predicted == []
