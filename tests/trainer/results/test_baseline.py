"""The verdict about a model and a constant answer: which models pass, and how many images are enough."""

import numpy as np
import pytest

from trainer.models.metrics import METRICS
from trainer.results.baseline import Verdict, judge, num_enough

NAMES = ["often", "rarely", "never"]


def labels(*counts: int) -> np.ndarray:
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("counts", [(40, 5), (3, 5), (100, 3, 2), (900, 100)])
def test_a_perfect_model_is_better_where_five_images_are_of_other_classes(metric: str, counts: tuple[int, ...]) -> None:
    found = judge(metric, labels(*counts), labels(*counts), 0, NAMES)
    assert found.verdict == Verdict.BETTER
    assert f"{metric} 1.0000 on {sum(counts):,} test images, " in found.reason
    assert "by always answering 'often' (p = " in found.reason


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("counts", [(40, 4), (2, 2), (1, 0), (0, 4), (10_000, 4)])
def test_without_five_images_of_other_classes_nothing_can_be_told(metric: str, counts: tuple[int, ...]) -> None:
    for answers in (labels(*counts), np.zeros(sum(counts), int), 1 - labels(*counts)):
        found = judge(metric, labels(*counts), answers, 0, NAMES)
        assert found.verdict == Verdict.UNDECIDED
        assert "too few test images to tell whether the model has learnt anything: " in found.reason


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("counts", [(117, 13), (100, 50, 20), (20, 20), (5, 500)])
def test_a_constant_answer_is_not_better_than_itself_or_than_another_one(metric: str, counts: tuple[int, ...]) -> None:
    found = judge(metric, labels(*counts), np.zeros(sum(counts), int), 0, NAMES)
    assert found.verdict == Verdict.NOT_BETTER
    assert found.reason.startswith("not better than a constant answer: ")
    # The most frequent class of the training split may be rare in the test split.
    other = judge(metric, labels(*counts), np.ones(sum(counts), int), 0, NAMES)
    assert other.verdict == Verdict.NOT_BETTER
    assert other.reason.endswith("; its only answer is 'rarely'")


def test_a_model_that_is_better_on_few_images_is_undecided_and_on_many_it_is_not_better() -> None:
    def judged(num_times: int) -> Verdict:
        # 12 of 20 are right; the constant answer gets 10.
        truth = np.tile(np.repeat([0, 1], 10), num_times)
        answers = np.tile(np.array([0] * 6 + [1] * 4 + [1] * 6 + [0] * 4), num_times)
        return judge("accuracy", truth, answers, 0, NAMES).verdict

    assert [judged(1), judged(2), judged(20)] == [Verdict.UNDECIDED, Verdict.NOT_BETTER, Verdict.BETTER]


@pytest.mark.parametrize(("error", "expected"), [(0.5, 31), (0.3, 57), (0.1, 195), (0.0, 0)])
def test_the_number_of_images_that_are_enough(error: float, expected: int) -> None:
    assert num_enough(error) == expected


def test_the_message_says_how_many_images_would_be_enough() -> None:
    found = judge("accuracy", labels(3, 3), labels(3, 3), 0, NAMES)
    assert found.reason.endswith("; about 31 would be enough for a model with half as many errors")
    only_one = judge("accuracy", labels(6), labels(6), 0, NAMES)
    assert only_one.reason.endswith("; all test images are of the class 'often'")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1)])
def test_a_model_that_guesses_rarely_passes(metric: str, shares: tuple[float, ...]) -> None:
    random = np.random.default_rng(7)
    verdicts = []
    for number in range(60):
        truth = random.choice(len(shares), 150, p=shares)
        guess = random.choice(len(shares), 150, p=shares) if number % 2 else random.integers(0, len(shares), 150)
        verdicts.append(judge(metric, truth, guess, 0, NAMES).verdict)
    # With an error rate of 5%, 8 of 60 have a probability of 1%.
    assert verdicts.count(Verdict.BETTER) <= 7
