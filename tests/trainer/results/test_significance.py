"""The tests of significance: against exact results, their error rate, and their power."""

import itertools

import numpy as np
import pytest
from scipy import stats

from trainer.models.metrics import METRICS, confusion_matrix, score
from trainer.results.significance import SIGNIFICANCE, Labels, p_better, p_by_chance, p_differs


def _exact(metric: str, labels: Labels, answers: Labels, reference: Labels, num_classes: int) -> float:
    """Return the one-sided p-value over all exchanges of answers."""
    where, leads = np.flatnonzero(answers != reference), []
    for flips in itertools.product((False, True), repeat=len(where)):
        first, second = answers.copy(), reference.copy()
        flipped = where[list(flips)]
        first[flipped], second[flipped] = reference[flipped], answers[flipped]
        scores = [score(metric, confusion_matrix(labels, each, num_classes)) for each in (first, second)]
        leads.append(scores[0] - scores[1])
    return float(np.mean(np.array(leads) >= leads[0] - 1e-12))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_a_p_value_is_that_of_all_exchanges(metric: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.choice(3, 14, p=[0.5, 0.3, 0.2])
    answers = np.where(random.random(14) < 0.8, labels, random.integers(0, 3, 14))
    reference = np.zeros(14, int)
    expected = _exact(metric, labels, answers, reference, 3)
    assert p_better(metric, labels, answers, reference, 3) == pytest.approx(expected, abs=0.02)


def test_accuracy_is_tested_by_mcnemars_exact_test() -> None:
    labels = np.zeros(100, int)
    answers, reference = (np.arange(100) < 30).astype(int), (np.arange(100) % 3 > 0).astype(int)
    won, lost = int(((answers == 0) & (reference == 1)).sum()), int(((answers == 1) & (reference == 0)).sum())
    one_sided = stats.binomtest(won, won + lost, alternative="greater").pvalue
    assert p_better("accuracy", labels, answers, reference, 2) == pytest.approx(one_sided)


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_that_guesses_is_rarely_better_than_a_constant_answer(metric: str) -> None:
    """The error rate is at most 5%, and a guess by the classes' frequencies loses accuracy, too."""
    random = np.random.default_rng(0)
    found = 0
    for _ in range(60):
        labels, answers = (random.choice(2, 200, p=[0.9, 0.1]) for _ in range(2))
        # A guess has a chance of its own with metrics that a constant answer does badly in: against another guess.
        reference = np.zeros(200, int) if metric == "accuracy" else random.choice(2, 200, p=[0.9, 0.1])
        found += p_better(metric, labels, answers, reference, 2) < SIGNIFICANCE
    assert found <= 8


@pytest.mark.parametrize("metric", METRICS)
def test_equal_answers_differ_by_nothing(metric: str) -> None:
    labels = np.array([0, 1, 1])
    assert p_better(metric, labels, labels, labels, 2) == 1
    assert p_differs(metric, labels, labels, labels, 2) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_five_of_five_is_significant_and_four_of_four_is_not(metric: str) -> None:
    for num_rare, is_significant in ((5, True), (4, False)):
        labels = np.array([0] * 40 + [1] * num_rare)
        p = p_better(metric, labels, labels, np.zeros_like(labels), 2)
        assert (p < SIGNIFICANCE) is is_significant
        assert p == pytest.approx(0.5**num_rare, abs=0.01)


@pytest.mark.parametrize("metric", METRICS)
def test_the_same_answers_give_the_same_p_value(metric: str) -> None:
    random = np.random.default_rng(1)
    labels, answers, reference = (random.integers(0, 5, 500) for _ in range(3))
    first, second = (p_better(metric, labels, answers, reference, 5) for _ in range(2))
    assert first == second


def test_an_answer_that_is_no_class_is_wrong() -> None:
    labels, unknown = np.array([0, 1] * 10), np.full(20, 2)
    for metric in METRICS:
        assert p_better(metric, labels, labels, unknown, 2) < 0.001


def test_a_guess_that_beats_a_constant_answer_in_macro_f1_has_learnt_nothing() -> None:
    random = np.random.default_rng(3)
    labels, guess, constant = random.integers(0, 4, 400), random.integers(0, 4, 400), np.zeros(400, int)
    assert p_better("macro-f1", labels, guess, constant, 4) < 0.001
    assert p_by_chance("macro-f1", labels, guess, 4) > SIGNIFICANCE
    learnt = np.where(random.random(400) < 0.3, labels, guess)
    assert p_by_chance("macro-f1", labels, learnt, 4) < 0.01
