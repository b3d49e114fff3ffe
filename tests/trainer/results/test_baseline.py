"""The verdict about a model and a constant answer: which models pass, and how many images are enough."""

import re

import numpy as np
import pytest

from trainer.models.metrics import METRICS, score_of
from trainer.results.baseline import Judgement, Verdict, judge, num_enough
from trainer.results.significance import Labels, p_better, p_by_chance, score_by_chance

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
    # In the test split of 5 and 500 images it is right far more often.
    is_more_often_right = counts == (5, 500) and metric != "balanced-accuracy"
    assert ("not better than guessing" in other.reason) is is_more_often_right


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


def scores(reason: str) -> tuple[str, ...]:
    """The score of the model, that of the other answer, and p."""
    (found,) = re.findall(r"accuracy (\S+) on [\d,]+ test images, (\S+) by .* \(p = ([\d.e-]+)\)", reason)
    return tuple(found)


def test_where_the_constant_answer_is_unlucky_the_numbers_are_those_of_the_guess() -> None:
    # 120 images of three shapes; the most frequent class of the training split has 2 of 17 test images.
    truth = np.repeat([0, 1, 2], [2, 8, 7])
    answers = np.array([0, 0] + [1] * 5 + [2, 2, 0] + [2] * 2 + [1] * 4 + [0])
    assert p_better("accuracy", truth, answers, np.zeros(17, int), 3) < 0.05
    found = judge("accuracy", truth, answers, 0, NAMES)
    assert found.verdict == Verdict.UNDECIDED
    by_chance = p_by_chance("accuracy", truth, answers, 3)
    assert by_chance > 0.05
    shuffled = np.mean([np.mean(np.random.default_rng(n).permutation(answers) == truth) for n in range(2000)])
    own, other, p_value = scores(found.reason)
    assert (float(own), float(p_value)) == (0.5294, pytest.approx(by_chance, rel=0.1))
    assert float(other) == pytest.approx(shuffled, abs=0.01)
    assert "about 21 would be enough" in found.reason
    # With ten times as many images, this lead is significant.
    assert judge("accuracy", np.tile(truth, 10), np.tile(answers, 10), 0, NAMES).verdict == Verdict.BETTER


@pytest.mark.parametrize("metric", METRICS)
def test_the_score_by_chance_is_the_mean_of_shuffled_answers(metric: str) -> None:
    random = np.random.default_rng(5)
    truth, answers = random.choice(4, 60, p=[0.5, 0.3, 0.2, 0]), random.integers(0, 5, 60)
    shuffled = np.mean([score_of(metric, truth, random.permutation(answers), 4) for _ in range(4000)])
    assert score_by_chance(metric, truth, answers, 4) == pytest.approx(shuffled, abs=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "shares", [(0.9, 0.1), *(pytest.param(each, marks=pytest.mark.soak) for each in ((0.5, 0.5), (0.6, 0.3, 0.1)))]
)
def test_a_model_that_guesses_rarely_passes(metric: str, shares: tuple[float, ...]) -> None:
    random = np.random.default_rng(7)
    verdicts = []
    for number in range(60):
        truth = random.choice(len(shares), 150, p=shares)
        guess = random.choice(len(shares), 150, p=shares) if number % 2 else random.integers(0, len(shares), 150)
        verdicts.append(judge(metric, truth, guess, 0, NAMES).verdict)
    # With an error rate of 5%, 8 of 60 have a probability of 1%.
    assert verdicts.count(Verdict.BETTER) <= 7


def verdict(metric: str, labels: Labels, answers: Labels, constant: int = 0) -> Judgement:
    return judge(metric, labels, answers, constant, [f"class {each}" for each in range(int(labels.max()) + 1)])


@pytest.mark.parametrize("metric", METRICS)
def test_a_constant_answer_is_never_better_than_another_one(metric: str) -> None:
    """The test split may have other frequencies than the training split."""
    labels = np.array([0] * 60 + [1] * 140)
    found = verdict(metric, labels, np.ones_like(labels))
    assert found.verdict == Verdict.NOT_BETTER
    assert "not better than guessing" in found.reason or metric != "accuracy"


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_that_guesses_the_frequencies_of_the_test_split_is_not_better(metric: str) -> None:
    random = np.random.default_rng(0)
    found = [
        verdict(metric, random.choice(2, 200, p=[0.15, 0.85]), random.choice(2, 200, p=[0.3, 0.7])).verdict
        for _ in range(40)
    ]
    assert found.count(Verdict.BETTER) <= 5


@pytest.mark.parametrize("metric", METRICS)
def test_a_useful_model_is_better_where_the_frequencies_differ(metric: str) -> None:
    random = np.random.default_rng(0)
    labels = random.choice(2, 200, p=[0.15, 0.85])
    answers = np.where(random.random(200) < 0.85, labels, 1 - labels)
    assert verdict(metric, labels, answers).verdict == Verdict.BETTER


@pytest.mark.parametrize("metric", METRICS)
def test_few_right_answers_in_a_rare_class_are_still_better(metric: str) -> None:
    labels = np.array([0] * 180 + [1] * 20)
    answers = (np.arange(200) >= 194).astype(int)
    assert verdict(metric, labels, answers).verdict == Verdict.BETTER


@pytest.mark.parametrize("constant", [0, 1])
def test_test_images_of_one_class_can_tell_nothing(constant: int) -> None:
    labels = np.full(60, 1)
    found = verdict("accuracy", labels, labels, constant)
    assert found.verdict == Verdict.UNDECIDED
    assert found.reason.endswith("; all test images are of the class 'class 1'")


@pytest.mark.slow
def test_a_perfect_model_is_never_refused() -> None:
    for num_first in range(8):
        for num_second in range(40):
            labels = np.array([0] * num_first + [1] * (num_second + 1))
            found = verdict("accuracy", labels, labels)
            assert found.verdict != Verdict.NOT_BETTER, found.reason
            assert "about 1 would" not in found.reason
