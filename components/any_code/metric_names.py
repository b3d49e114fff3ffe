"""What the names of metrics mean: in which direction they are better, in which range they lie, and what shows them.

Names are compared in lower case, with `_` for other separators, and without `val_`, `test_` and the like.
"""

import math
import re
from dataclasses import dataclass

MAXIMIZE, MINIMIZE = DIRECTIONS = ("maximize", "minimize")
_PREFIXES = re.compile(r"^((val|valid|validation|test|eval|evaluation)_)+(?=.)")


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The meaning of one name."""

    direction: str
    lowest: float = -math.inf
    highest: float = math.inf
    measure: str = ""
    """Name in `measures`, which computes it from the predictions; empty if they do not show it."""
    is_claim_checked: bool = True
    """Whether the measure is this very metric; otherwise it only decides whether the model has learnt anything."""


def _fraction(measure: str = "", direction: str = MAXIMIZE) -> Meaning:
    return Meaning(direction=direction, lowest=0, highest=1, measure=measure)


def _error(measure: str = "") -> Meaning:
    return Meaning(direction=MINIMIZE, lowest=0, measure=measure)


def _correlation(measure: str = "") -> Meaning:
    return Meaning(direction=MAXIMIZE, lowest=-1, highest=1, measure=measure, is_claim_checked=False)


_MEANINGS = {
    ("accuracy", "acc", "accuracy_score", "categorical_accuracy", "binary_accuracy"): _fraction("accuracy"),
    ("sparse_categorical_accuracy", "top_1_accuracy", "top1_accuracy", "micro_f1", "f1_micro"): _fraction("accuracy"),
    ("balanced_accuracy", "balanced_accuracy_score", "macro_recall", "recall_macro"): _fraction("balanced-accuracy"),
    ("macro_f1", "f1_macro", "macro_f1_score"): _fraction("macro-f1"),
    ("f1", "f1_score", "weighted_f1", "f1_weighted"): _fraction("f1"),
    ("precision", "precision_score", "macro_precision", "precision_macro"): _fraction("precision"),
    ("recall", "recall_score", "sensitivity", "true_positive_rate"): _fraction("recall"),
    ("error_rate", "misclassification_rate"): _fraction("error-rate", MINIMIZE),
    ("mcc", "matthews_corrcoef", "kappa", "cohen_kappa"): _correlation("balanced-accuracy"),
    ("top_3_accuracy", "top_5_accuracy", "top5_accuracy", "iou", "mean_iou", "miou", "dice"): _fraction(),
    ("map", "mean_average_precision", "ndcg", "mrr", "hit_rate"): _fraction(),
    ("roc_auc", "auc", "auroc", "roc_auc_score", "auc_roc"): _fraction("roc-auc"),
    ("average_precision", "pr_auc", "auprc", "auc_pr"): _fraction("average-precision"),
    ("log_loss", "logloss", "cross_entropy", "nll", "negative_log_likelihood"): _error("log-loss"),
    ("brier", "brier_score"): _error("brier"),
    ("mse", "mean_squared_error"): _error("mse"),
    ("rmse", "root_mean_squared_error"): _error("rmse"),
    ("mae", "mean_absolute_error"): _error("mae"),
    ("r2", "r2_score", "r_squared"): Meaning(direction=MAXIMIZE, highest=1, measure="r2"),
    ("mape", "smape", "msle", "rmsle", "mean_absolute_percentage_error", "wer", "cer", "error"): _error(),
    ("perplexity",): Meaning(direction=MINIMIZE, lowest=1),
    ("pearson", "spearman", "pearsonr", "spearmanr"): _correlation(),
    ("loss",): Meaning(direction=MINIMIZE),
}
"""Each row: spellings, and their meaning."""

_BY_NAME = {name: meaning for names, meaning in _MEANINGS.items() for name in names}


def meaning_of(metric: str) -> Meaning | None:
    """Return the meaning of a metric's name; None for an unknown one."""
    name = re.sub(r"[^a-z0-9]+", "_", metric.casefold()).strip("_")
    return _BY_NAME.get(name) or _BY_NAME.get(_PREFIXES.sub("", name))
