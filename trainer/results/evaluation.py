"""Accuracy, loss, confusion matrix and scores per class, including those of a constant answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.models.metrics import ACCURACY, confusion_matrix, score as score_of


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """One class on the test split."""

    class_name: str
    precision: float
    """Fraction of the predictions of this class that are right; 0 if there are none."""
    recall: float
    """Fraction of this class's examples that are predicted as such."""
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
    metric: str
    """Metric that judges the model, one of `trainer.models.metrics.METRICS`."""
    score: float
    """Value of the metric, 0 to 1."""
    baseline_class: str
    """The most frequent class of the training split."""
    baseline_accuracy: float
    """Accuracy of answering `baseline_class` for every image."""
    baseline_score: float
    """Value of the metric for that constant answer."""
    never_predicted: list[str]
    """Classes with test images that the model never predicts."""
    metrics: dict[str, float | str]
    """All metrics with a single value, by name: numbers, and the name of a class."""


def score(
    labels: npt.NDArray[np.int32],
    probabilities: npt.NDArray[np.float32],
    class_names: list[str],
    *,
    train_counts: Sequence[int],
    metric: str = ACCURACY,
) -> Evaluation:
    """Compute the metrics of predictions.

    Args:
        labels: True classes int32 [N].
        probabilities: Values float32 [N, K].
        class_names: K names.
        train_counts: Number of training images per class [K]; of equally frequent classes, the first is the baseline.
        metric: Metric that judges the model.
    """
    from sklearn import metrics

    classes = list(range(len(class_names)))
    predicted = probabilities.argmax(axis=1)
    confusion = confusion_matrix(labels, predicted, len(classes))
    baseline = int(np.argmax(train_counts))
    accuracy = score_of(ACCURACY, confusion)
    constant = confusion_matrix(labels, np.full(len(labels), baseline), len(classes))
    # Rows of float32 do not sum exactly to one, which scikit-learn warns about.
    exact = probabilities.astype(np.float64)
    loss = float(metrics.log_loss(labels, exact / exact.sum(axis=1, keepdims=True), labels=classes))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0.0
    )
    # Classes without test images would count as misses.
    present = support > 0
    averages = {"macro_precision": precision, "balanced_accuracy": recall, "macro_f1": f1}
    columns = zip(class_names, precision, recall, support, strict=True)
    baselines = {
        f"baseline_{name.replace('-', '_')}": score_of(name, constant) for name in dict.fromkeys((ACCURACY, metric))
    }
    return Evaluation(
        accuracy=accuracy,
        loss=loss,
        num_examples=len(labels),
        class_names=class_names,
        confusion_matrix=confusion.tolist(),
        class_scores=[
            ClassScore(class_name=name, precision=float(p), recall=float(r), num_examples=int(n))
            for name, p, r, n in columns
        ],
        metric=metric,
        score=score_of(metric, confusion),
        baseline_class=class_names[baseline],
        baseline_accuracy=score_of(ACCURACY, constant),
        baseline_score=score_of(metric, constant),
        never_predicted=[class_names[each] for each in np.flatnonzero(present & (confusion.sum(axis=0) == 0))],
        metrics={
            "accuracy": accuracy,
            **baselines,
            "baseline_class": class_names[baseline],
            "loss": loss,
            **{name: float(values[present].mean()) for name, values in averages.items()},
            "num_test_examples": float(len(labels)),
        },
    )
