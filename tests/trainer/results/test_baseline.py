"""The verdict on a model that has learnt nothing, on labels and answers that are given."""

import numpy as np
import pytest

from trainer.models.metrics import METRICS
from trainer.results.baseline import Judgement, Verdict, judge
from trainer.results.significance import Labels


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
    assert found.reason.endswith("all of them are of the class 'class 1'")


def test_a_perfect_model_is_never_refused() -> None:
    for num_first in range(8):
        for num_second in range(40):
            labels = np.array([0] * num_first + [1] * (num_second + 1))
            found = verdict("accuracy", labels, labels)
            assert found.verdict != Verdict.NOT_BETTER, found.reason
            assert "about 1 would" not in found.reason
