"""Each class against all others: precision-recall and ROC curves, and the threshold that suits the class best."""

from collections.abc import Sequence

import numpy as np

from trainer.data.pages import charts, page
from trainer.results.predictions import Predictions

_NUM_DRAWN = 12


def blocks(class_names: Sequence[str], validation: Predictions, test: Predictions) -> list[page.Block]:
    """Return the curves and the thresholds, of the classes with the smallest area below precision and recall first.

    Args:
        class_names: K names. Left out are those without images in a split, and one that all test images are of.
        validation: The predictions of which the thresholds have the best F1.
        test: The predictions that everything else is computed from.
    """
    from scipy import stats
    from sklearn import metrics

    found = []
    for index in np.intersect1d(validation.labels, test.labels):
        is_class, scores = test.labels == index, test.probabilities[:, index]
        if not is_class.all():
            chosen = metrics.precision_recall_curve(validation.labels == index, validation.probabilities[:, index])
            # F1 is the harmonic mean of both. The last point has no threshold.
            threshold = chosen[2][stats.hmean(chosen[:2])[:-1].argmax()]
            precision, recall, _ = metrics.precision_recall_curve(is_class, scores)
            row = [
                class_names[index],
                metrics.average_precision_score(is_class, scores),
                metrics.roc_auc_score(is_class, scores),
                threshold,
                # Not the curve's last point, which has a precision of 1 without any image.
                *metrics.precision_recall_fscore_support(
                    is_class, scores >= threshold, average="binary", zero_division=0.0
                )[:2],
            ]
            curves = {
                "precision over recall": zip(recall, precision, strict=True),
                "ROC": zip(*metrics.roc_curve(is_class, scores)[:2], strict=True),
            }
            found.append((row, curves))
    found.sort(key=lambda each: each[0][1])
    return [
        page.Chart(
            title="Curves",
            svgs=[
                charts.lines(row[0], curves, x_label="recall; false positive rate", y_label="precision; recall")
                for row, curves in found[:_NUM_DRAWN]
            ],
            note=f"Each class against all others on the test split, at most the {_NUM_DRAWN} with the smallest PR AUC.",
        ),
        page.Table(
            title="Thresholds",
            columns=["class", "PR AUC", "ROC AUC", "threshold", "precision", "recall"],
            rows=[row for row, _ in found],
            note="The thresholds have the best F1 on the validation split. All other figures are of the test split.",
        ),
    ]
