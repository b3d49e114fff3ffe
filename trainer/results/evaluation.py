"""How good predictions are: accuracy, loss, confusion matrix and scores per class."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """One class on the test split."""

    class_name: str
    precision: float
    """Fraction of the predictions of this class that are right; 0 if there are none."""
    recall: float
    """Fraction of this class's examples that are found."""
    num_examples: int


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How good the best checkpoint is on the test split."""

    accuracy: float
    loss: float
    """Mean cross-entropy in nats."""
    num_examples: int
    class_names: list[str]
    confusion_matrix: list[list[int]]
    """K rows of K counts: rows are true classes, columns are predicted classes."""
    class_scores: list[ClassScore]
    metrics: dict[str, float]
    """All metrics that are a single number, by name."""


def score(labels: npt.NDArray[np.int32], probabilities: npt.NDArray[np.float32], class_names: list[str]) -> Evaluation:
    """Compute the metrics of predictions.

    Args:
        labels: True classes int32 [N].
        probabilities: Values float32 [N, K].
        class_names: K names.
    """
    from sklearn import metrics

    classes = list(range(len(class_names)))
    predicted = probabilities.argmax(axis=1)
    loss = _cross_entropy(labels, probabilities)
    accuracy = float(metrics.accuracy_score(labels, predicted))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0.0
    )
    # Classes without test images would count as misses.
    present = support > 0
    averages = {"macro_precision": precision, "macro_recall": recall, "macro_f1": f1}
    columns = zip(class_names, precision, recall, support, strict=True)
    return Evaluation(
        accuracy=accuracy,
        loss=loss,
        num_examples=len(labels),
        class_names=class_names,
        confusion_matrix=metrics.confusion_matrix(labels, predicted, labels=classes).tolist(),
        class_scores=[
            ClassScore(class_name=name, precision=float(p), recall=float(r), num_examples=int(n))
            for name, p, r, n in columns
        ],
        metrics={
            "accuracy": accuracy,
            "loss": loss,
            **{name: float(values[present].mean()) for name, values in averages.items()},
            "num_test_examples": float(len(labels)),
        },
    )


def _cross_entropy(labels: npt.NDArray[np.int32], probabilities: npt.NDArray[np.float32]) -> float:
    from sklearn import metrics

    # Rows of float32 do not sum exactly to one, which scikit-learn warns about.
    exact = probabilities.astype(np.float64)
    normalised = exact / exact.sum(axis=1, keepdims=True)
    return float(metrics.log_loss(labels, normalised, labels=list(range(probabilities.shape[1]))))
