"""What predictions show: values of metrics, and how often noise passes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from components.any_code.evidence import Examples, Line
from components.any_code.measures import measure_of
from trainer.results.baseline import Verdict
from trainer.results.significance import SIGNIFICANCE

NUM = 100
Random = np.random.Generator
Make = Callable[[Random], list[Line]]


def _lines(labels: Any, answers: Any, name: str = "prediction") -> list[Line]:
    return [
        {"label": str(label), "prediction": "0", name: str(answer) if name == "prediction" else answer}
        for label, answer in zip(labels.tolist(), answers.tolist(), strict=True)
    ]


def of_classes(random: Random) -> list[Line]:
    return _lines(random.integers(0, 2, NUM), random.integers(0, 2, NUM))


def of_rare_classes(random: Random) -> list[Line]:
    return _lines(random.random(NUM) < 0.1, random.random(NUM) < 0.1)


def of_numbers(random: Random) -> list[Line]:
    labels = random.normal(size=NUM)
    return _lines(labels, 0.1 * random.normal(size=NUM))


def of_scores(random: Random) -> list[Line]:
    return _lines(random.integers(0, 2, NUM), 0.5 + 0.05 * random.normal(size=NUM), "score")


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("accuracy", of_classes),
        ("accuracy", of_rare_classes),
        ("balanced-accuracy", of_rare_classes),
        ("macro-f1", of_rare_classes),
        ("rmse", of_numbers),
        ("mae", of_numbers),
        ("roc-auc", of_scores),
        ("log-loss", of_scores),
    ],
)
def test_noise_passes_in_less_than_one_of_twenty_cases(name: str, make: Make) -> None:
    random, measure = np.random.default_rng(11), measure_of(name, [])
    assert measure
    num_passed = 0
    for _ in range(1000):
        lines = make(random)
        found = Examples(labels=[line["label"] for line in lines], own=[*lines])
        num_passed += measure.judge(found).verdict == Verdict.BETTER
    assert num_passed < 1000 * SIGNIFICANCE, num_passed


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), [("accuracy", of_classes), ("rmse", of_numbers), ("roc-auc", of_scores)])
def test_an_equally_good_model_is_significantly_better_in_less_than_one_of_twenty_cases(name: str, make: Make) -> None:
    random, measure = np.random.default_rng(12), measure_of(name, [])
    assert measure
    num_passed = 0
    for _ in range(1000):
        lines = make(random)
        others = [dict(line) for line in lines]
        for line, other in zip(others, make(random), strict=True):
            line |= {name: other[name] for name in ("prediction", "score") if name in other}
        found = Examples(labels=[line["label"] for line in lines], own=[*lines], champion=[*others])
        num_passed += measure.compare(found, must_improve=True)[0]
    assert num_passed < 1000 * SIGNIFICANCE, num_passed


@pytest.mark.parametrize(
    ("name", "labels", "answers", "field", "expected"),
    [
        ("accuracy", [0, 0, 1, 1], [0, 1, 1, 1], "prediction", [0.75]),
        ("error-rate", [0, 0, 1, 1], [0, 1, 1, 1], "prediction", [0.25]),
        ("balanced-accuracy", [0, 0, 1, 1], [0, 1, 1, 1], "prediction", [0.75]),
        ("f1", [0, 0, 1, 1], [0, 1, 1, 1], "prediction", [11 / 15, 0.75, 2 / 3, 0.8]),
        ("recall", [0, 0, 1, 1], [0, 1, 1, 1], "prediction", [0.75, 0.5, 1]),
        ("rmse", [0, 2, 4], [0, 2, 1], "prediction", [3**0.5]),
        ("mae", [0, 2, 4], [0, 2, 1], "prediction", [1]),
        ("r2", [0, 2, 4], [0, 2, 1], "prediction", [1 - 9 / 8]),
        ("roc-auc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], "score", [0.75]),
        ("average-precision", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], "score", [5 / 6]),
        ("average-precision", [0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], "score", [0.5]),
        ("log-loss", [0, 1], [0.25, 0.5], "score", [-np.log([0.75, 0.5]).mean()]),
        ("brier", [0, 1], [0.25, 0.5], "score", [(0.25**2 + 0.5**2) / 2]),
    ],
)
def test_values_are_those_of_the_metrics_definition(
    name: str, labels: list[int], answers: list[float], field: str, expected: list[float]
) -> None:
    measure, lines = measure_of(name, []), _lines(np.array(labels), np.array(answers), field)
    assert measure
    assert measure.answer == field
    values = measure.values(Examples(labels=[line["label"] for line in lines], own=[*lines]))
    assert {round(each, 9) for each in values} == {round(each, 9) for each in expected}
