"""Metrics that judge a model: for the best checkpoint, early stopping, the constant answer and the comparison.

Each is computed from a confusion matrix int64 [K, K]: rows are true classes, columns are predicted ones. Classes
without examples do not count, as in scikit-learn's `balanced_accuracy_score`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
ACCURACY = "accuracy"


def confusion_matrix(labels: npt.NDArray[Any], predicted: npt.NDArray[Any], num_classes: int) -> Counts:
    """Count the pairs of a true class [N] and a predicted one [N]; return int64 [K, K]."""
    cells = np.asarray(labels, np.int64) * num_classes + np.asarray(predicted, np.int64)
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)


def score_of(metric: str, labels: npt.NDArray[Any], answers: npt.NDArray[Any], num_classes: int) -> float:
    """Return the value of a metric, 0 to 1, for true classes [N] and answers [N]; K is an answer of no class."""
    counted = (labels[answers == labels], labels, answers)
    return float(METRICS[metric](*(np.bincount(each, minlength=num_classes)[:num_classes] for each in counted)))


def score(metric: str, confusion: Counts) -> float:
    """Return the value of a metric, 0 to 1; 0 if there are no examples."""
    return float(METRICS[metric](confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)))


def _accuracy(right: Counts, num_examples: Counts, num_predicted: Counts) -> Scores:
    return np.asarray(right.sum(axis=-1) / max(1, int(num_examples.sum())))


def _balanced_accuracy(right: Counts, num_examples: Counts, num_predicted: Counts) -> Scores:
    present = num_examples > 0
    return _mean(right[..., present] / num_examples[present])


def _macro_f1(right: Counts, num_examples: Counts, num_predicted: Counts) -> Scores:
    present = num_examples > 0
    return _mean(2 * right[..., present] / (num_examples[present] + num_predicted[..., present]))


def _mean(values: Scores) -> Scores:
    return values.mean(axis=-1) if values.shape[-1] else np.zeros(values.shape[:-1])


METRICS: dict[str, Callable[[Counts, Counts, Counts], Scores]] = {
    ACCURACY: _accuracy,
    "balanced-accuracy": _balanced_accuracy,
    "macro-f1": _macro_f1,
}
"""Each takes the numbers of correct predictions [..., K], examples [K] and predictions [..., K] per class."""
