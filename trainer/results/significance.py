"""Test whether one model is significantly better than another on the same images.

Accuracy: McNemar's exact test. Other metrics: a paired permutation test, which exchanges both models' answers for each
image with probability 1/2. Images with equal classes and equal pairs of answers are drawn together, as binomial counts.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.models.metrics import ACCURACY, METRICS, score_of

SIGNIFICANCE = 0.05
_NUM_PERMUTATIONS = 9_999
_NUM_SHUFFLES = 999
_SEED = 20_261_123
_CELLS_AT_ONCE = 4_000_000
"""Bounds the memory of the test to about 100 MB."""
ROUNDING = 1e-12
Labels = npt.NDArray[Any]


def p_better(metric: str, labels: Labels, answers: Labels, reference: Labels, num_classes: int) -> float:
    """Return the one-sided p-value: the probability of at least this lead if the reference were as good.

    Args:
        metric: One of `trainer.models.metrics.METRICS`.
        labels: True classes [N], 0 to K - 1.
        answers: Answers of the model [N]; K means an answer that is not one of the classes.
        reference: Answers of the model to beat [N].
        num_classes: K.
    """
    if metric == ACCURACY:
        is_right, was_right = answers == labels, reference == labels
        return p_mcnemar(int((is_right & ~was_right).sum()), int((was_right & ~is_right).sum()))
    observed, permuted = _leads(metric, labels, answers, reference, num_classes)
    return float(1 + (permuted >= observed - ROUNDING).sum()) / (1 + len(permuted))


def p_by_chance(metric: str, labels: Labels, answers: Labels, num_classes: int) -> float:
    """Return the p-value of a score, if the model had learnt nothing: its own answers, shuffled among the images.

    A model that guesses beats a constant answer in macro F1, and in accuracy if the test split has other frequencies
    than the training split. Arguments are as for `p_better`.
    """
    random = np.random.default_rng(_SEED)
    reached = score_of(metric, labels, answers, num_classes) - ROUNDING
    shuffled = (random.permutation(answers) for _ in range(_NUM_SHUFFLES))
    num_as_good = sum(score_of(metric, labels, each, num_classes) >= reached for each in shuffled)
    return (1 + num_as_good) / (1 + _NUM_SHUFFLES)


def score_by_chance(metric: str, labels: Labels, answers: Labels, num_classes: int) -> float:
    """Return the mean score of a model's own answers, shuffled among the images; arguments are as for `p_better`."""
    counts, answered = (np.bincount(each, minlength=num_classes)[:num_classes] for each in (labels, answers))
    # Every metric is linear in the numbers of correct answers.
    num_right: Any = counts * answered / max(1, len(labels))
    return float(METRICS[metric](num_right, counts, answered))


def p_differs(metric: str, labels: Labels, answers: Labels, reference: Labels, num_classes: int) -> float:
    """Return the two-sided p-value of a difference, by permutations; arguments as for `p_better`."""
    observed, permuted = _leads(metric, labels, answers, reference, num_classes)
    return float(1 + (np.abs(permuted) >= abs(observed) - ROUNDING).sum()) / (1 + len(permuted))


def p_mcnemar(num_won: int, num_lost: int) -> float:
    """Return the one-sided p-value of McNemar's exact test.

    Args:
        num_won: Images that only the model classifies correctly.
        num_lost: Images that only the reference classifies correctly.
    """
    from scipy import stats

    return float(stats.binom.sf(num_won - 1, num_won + num_lost, 0.5)) if num_won + num_lost else 1.0


def _leads(
    metric: str, labels: Labels, answers: Labels, reference: Labels, num_classes: int
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the lead of the model in the metric, and its lead after each permutation."""
    from scipy import sparse

    def per_class(rows: npt.NDArray[np.int64], counted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.bincount(rows, weights=counted, minlength=num_classes + 1)[:num_classes].astype(np.int64)

    triples, counts = np.unique(np.stack([labels, answers, reference]).astype(np.int64), axis=1, return_counts=True)
    true, first, second = triples
    num_examples = per_class(true, counts)
    right = [per_class(true, counts * (each == true)) for each in (first, second)]
    predicted = [per_class(each, counts) for each in (first, second)]

    def lead(moved_right: npt.NDArray[np.int64], moved: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        after = METRICS[metric](right[0] + moved_right, num_examples, predicted[0] + moved)
        before = METRICS[metric](right[1] - moved_right, num_examples, predicted[1] - moved)
        return after - before

    differs = first != second
    true, first, second, counts = true[differs], first[differs], second[differs], counts[differs]
    shape, rows = (len(counts), num_classes + 1), np.arange(len(counts))
    # Gain of the first model, in correct answers and in predictions per class, if one image is exchanged.
    gain = (second == true).astype(np.int64) - (first == true)
    right_moves = sparse.csr_array((gain, (rows, true)), shape=shape)
    ones = np.ones(len(counts), np.int64)
    moves = sparse.csr_array((ones, (rows, second)), shape=shape) - sparse.csr_array((ones, (rows, first)), shape=shape)
    random = np.random.default_rng(_SEED)
    permuted, left = [], _NUM_PERMUTATIONS
    while left:
        size = min(left, max(1, _CELLS_AT_ONCE // max(len(counts), num_classes)))
        exchanged = random.binomial(counts, 0.5, size=(size, len(counts)))
        permuted.append(lead((exchanged @ right_moves)[:, :num_classes], (exchanged @ moves)[:, :num_classes]))
        left -= size
    zeros = np.zeros(num_classes, np.int64)
    return float(lead(zeros, zeros)), np.concatenate(permuted)
