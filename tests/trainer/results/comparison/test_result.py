"""From the answers of two models to the decision: in each metric, and on the images of the common classes only."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trainer.models.metrics import METRICS
from trainer.results.comparison import comparison
from trainer.results.comparison.class_names import Classes, match
from trainer.results.comparison.comparison import result
from trainer.results.comparison.decision import Comparison, decide
from trainer.results.comparison.evidence import Evidence
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.report import comparison as report
from vertex_testing.html import Page

ABC = match(("a", "b", "c"), ("a", "b", "c"))
Answers = npt.NDArray[Any]


def judged(found: Comparison, *, max_regression: float = 0.0, must_improve: bool = False) -> tuple[bool, str]:
    return decide(found.table, max_regression=max_regression, must_improve=must_improve, scores=found.scores)


def score(metric: str, labels: list[int], answers: list[int]) -> float:
    """Compute a metric by its definition, from pairs."""
    pairs = list(zip(labels, answers, strict=True))
    if metric == "accuracy":
        return sum(label == answer for label, answer in pairs) / len(pairs)
    values = []
    for each in sorted(set(labels)):
        right, num = sum(pair == (each, each) for pair in pairs), labels.count(each)
        values.append(right / num if metric == "balanced-accuracy" else 2 * right / (num + answers.count(each)))
    return sum(values) / len(values)


def drawn(random: np.random.Generator, labels: Answers, num_answers: int, share: float) -> Answers:
    """Return answers that are right with a probability, and any one otherwise."""
    guesses = random.integers(0, num_answers, len(labels))
    return np.where(random.random(len(labels)) < share, labels, guesses).astype(np.int32)


@pytest.mark.parametrize("metric", METRICS)
def test_no_challenger_is_promoted_that_loses_more_than_max_regression_on_the_common_classes(metric: str) -> None:
    random = np.random.default_rng(24)
    num_refused = num_promoted = 0
    for _ in range(100):
        num_common, num_new = (int(random.integers(*limits)) for limits in ((2, 6), (0, 3)))
        names = [tuple(f"{kind}{n}" for n in range(num)) for kind, num in (("a", num_common), ("c", num_new))]
        classes = Classes(common=names[0], only_challenger=names[1])
        shares = random.dirichlet(np.full(num_common, 0.7))
        labels = random.choice(num_common, int(random.integers(30, 300)), p=shares).astype(np.int32)
        quality = random.random()
        champion, challenger = (
            drawn(random, labels, sum(map(len, names)), np.clip(quality + random.normal(0, 0.08), 0, 1))
            for _ in range(2)
        )
        # The champion has never heard of the new classes.
        champion = np.where(champion >= num_common, 0, champion)
        found = result(labels, champion, challenger, classes=classes, metric=metric)
        first, second = (score(metric, labels.tolist(), each.tolist()) for each in (champion, challenger))
        assert found.scores.champion == pytest.approx(first)
        assert found.scores.challenger == pytest.approx(second)
        assert found.table.num_images == len(labels)
        for max_regression in (0.0, 0.01, 0.1):
            is_promoted, reason = judged(found, max_regression=max_regression)
            if abs(first - second - max_regression) > 1e-9:
                assert is_promoted is (first - second < max_regression), reason
            assert not judged(found, max_regression=max_regression, must_improve=True)[0] or second > first
            num_promoted += is_promoted
            num_refused += not is_promoted
    assert min(num_refused, num_promoted) > 50


def test_the_metric_decides_and_not_the_accuracy() -> None:
    """The challenger wins more images of the frequent class than it loses of the rare one, which it never finds."""
    labels = np.repeat([0, 1], [180, 20])
    champion = np.where(np.arange(200) < 25, 1, labels)
    challenger = np.zeros(200, np.int32)
    classes = match(("few", "many"), ("few", "many"))
    by_accuracy = result(labels, champion, challenger, classes=classes)
    assert judged(by_accuracy) == (True, "90.00% against 87.50% on 200 images: better (p = 0.55)")
    by_recall = result(labels, champion, challenger, classes=classes, metric="balanced-accuracy")
    assert by_recall.scores.champion == pytest.approx((155 / 180 + 1) / 2)
    is_promoted, reason = judged(by_recall)
    assert not is_promoted
    assert reason.startswith("balanced-accuracy 50.00% against 93.06% on 200 images: worse by 43.06%, more than")
    assert by_recall.scores.p_value < 0.05
    # The loss is compared with the parameter in the unit of the metric.
    assert judged(by_recall, max_regression=0.4306)[0] is True
    assert judged(by_recall, max_regression=0.43)[0] is False


def test_must_improve_asks_for_a_significant_gain_of_the_metric() -> None:
    labels = np.repeat([0, 1], [180, 20])
    challenger = labels.copy()
    challenger[:12] = 1
    few, many = (np.where((labels == 1) & (np.arange(200) < 180 + num), 0, labels) for num in (2, 16))
    classes = match(("few", "many"), ("few", "many"))
    for champion, is_better in ((few, False), (many, True)):
        found = result(labels, champion, challenger, classes=classes, metric="balanced-accuracy")
        assert found.scores.difference > 0
        is_promoted, reason = judged(found, must_improve=True)
        assert is_promoted is is_better, reason
        assert ("which must_improve requires" in reason) is not is_better
    # In accuracy, the second one is not significantly better.
    assert not judged(result(labels, many, challenger, classes=classes), must_improve=True)[0]


@pytest.mark.parametrize("metric", METRICS)
def test_equal_answers_are_as_good_in_each_metric(metric: str) -> None:
    labels = np.random.default_rng(3).integers(0, 3, 101)
    answers = (labels + (np.arange(101) % 7 == 0)) % 3
    found = result(labels, answers, answers, classes=ABC, metric=metric)
    assert judged(found)[0]
    assert "as good (p = 1)" in judged(found)[1]


def test_the_page_and_the_figures_are_of_the_metric() -> None:
    labels = np.repeat([0, 1, 2], 30)
    found = result(labels, np.zeros(90, np.int32), labels, classes=ABC, metric="macro-f1")
    shown = " ".join(
        " ".join(
            Page(report.render(champion="m@1", is_promoted=True, reason=judged(found)[1], comparison=found)).texts
        ).split()
    )
    assert "macro-f1 metric 100.00% new model 16.67% champion +83.33% difference" in shown
    assert "p-value (permutation test)" in shown
    assert "McNemar" not in shown
    figures = report.metrics(found)
    assert figures["challenger_macro_f1"] == 1
    assert figures["champion_macro_f1"] == pytest.approx(1 / 6)
    assert figures["champion_accuracy"] == pytest.approx(1 / 3)
    assert figures["difference"] == pytest.approx(5 / 6)


def test_an_answer_outside_of_the_common_classes_is_wrong_and_not_the_next_class() -> None:
    classes = match(("a", "b"), ("a", "b", "new", "newer"))
    # Indices: a, b, new, newer.
    labels = np.array([0, 0, 1, 1], np.int32)
    champion = np.array([0, 1, 1, 1], np.int32)
    challenger = np.array([0, 3, 1, 2], np.int32)
    found = result(labels, champion, challenger, classes=classes, metric="macro-f1")
    assert (found.table.both, found.table.only_champion, found.table.neither) == (2, 1, 1)
    assert {each.class_name: each.num_images for each in found.classes} == {"a": 2, "b": 2}
    assert found.scores.champion == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert found.scores.challenger == pytest.approx(2 / 3)


def test_a_champion_of_lost_classes_is_left_to_a_user() -> None:
    """On the images of the other classes a model that has forgotten them is as good, and would replace it."""
    with pytest.raises(NotComparable, match=r"has 2 of the champion's 4 classes, but not 'cow', 'hen'; rename") as lost:
        match(("dog", "cow", "cat", "hen"), ("dog", "cat"))
    assert lost.value.is_final
    assert lost.value.has_other_classes
    # It may have been renamed.
    with pytest.raises(
        NotComparable, match=r"has 1 of the champion's 2 classes and 1 others \('feline'\), but not 'cat'"
    ):
        match(("dog", "cat"), ("dog", "feline"))
    assert match(("dog", "cat"), ("dog", "cat", "cow")).only_challenger == ("cow",)


def test_a_million_images_of_a_thousand_classes_are_compared() -> None:
    names = tuple(f"{number:04}" for number in range(1000))
    random = np.random.default_rng(0)
    labels = random.integers(0, 1000, 1_000_000, np.int32)
    champion, challenger = (drawn(random, labels, 1000, 0.9) for _ in range(2))
    found = result(labels, champion, challenger, classes=match(names, names))
    assert found.table.num_images == 1_000_000
    assert len(found.classes) == 1000


def test_too_few_images_are_not_compared_and_the_message_has_both_counts() -> None:
    found = Evidence(content_hashes={"a": "1", "b": "2"}, class_names={"a": "cat", "b": "dog"}, num_seen=30)
    classes = Classes(common=("cat", "dog"), only_challenger=())
    expected = (
        "only 2 test images were seen by neither model, fewer than min_compared_images 3"
        " (30 left out because a model has seen them)"
    )
    with pytest.raises(NotComparable, match=re.escape(expected)):
        comparison._check_number(found, classes, 3)
