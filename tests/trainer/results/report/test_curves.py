"""Curves and thresholds of classes, with figures that are computed by counting."""

import numpy as np
import pytest

from trainer.data.pages import page
from trainer.results.predictions import Predictions
from trainer.results.report import curves


def of(labels: object, first: object) -> Predictions:
    """Predictions of two classes."""
    scores = np.asarray(first, np.float64)
    return Predictions(
        split="test", labels=np.asarray(labels, np.int32), probabilities=np.stack([scores, 1 - scores], axis=1)
    )


def rows(validation: Predictions, test: Predictions, names: tuple[str, ...] = ("a", "b")) -> dict[str, list[float]]:
    """The figures of each class."""
    chart, table = curves.blocks(names, validation, test)
    assert isinstance(chart, page.Chart)
    assert isinstance(table, page.Table)
    assert len(chart.svgs) == min(12, len(table.rows))
    return {str(name): [float(value) for value in figures] for name, *figures in table.rows}


VALIDATION = of([0, 0, 0, 1, 1], [0.9, 0.8, 0.3, 0.5, 0.1])
TEST = of([0, 0, 1, 0, 1, 1], [0.95, 0.85, 0.82, 0.7, 0.6, 0.2])


def test_the_figures_of_known_predictions() -> None:
    # Of class a, from the most probable image on, the test images are right, right, wrong, right, wrong, wrong.
    area, roc_area, threshold, precision, recall = rows(VALIDATION, TEST)["a"]
    assert area == pytest.approx((1 + 1 + 3 / 4) / 3)
    # Of the nine pairs of an image of each class, only 0.7 and 0.82 are in the wrong order.
    assert roc_area == pytest.approx(8 / 9)
    # F1 on the validation split: 2 * 3 / (3 + 4) at 0.3, 2 * 2 / (3 + 2) at 0.8.
    assert threshold == 0.3
    assert (precision, recall) == (pytest.approx(3 / 5), 1.0)


def test_the_test_split_chooses_no_threshold() -> None:
    other = of(TEST.labels, TEST.probabilities[::-1, 0])
    before, after = rows(VALIDATION, TEST), rows(VALIDATION, other)
    assert {name: figures[2] for name, figures in before.items()} == {name: row[2] for name, row in after.items()}
    assert before["a"] != after["a"]


def test_figures_at_the_threshold_are_those_of_counting() -> None:
    random = np.random.default_rng(0)

    def sample() -> Predictions:
        labels = random.integers(0, 5, 300)
        values = random.random((300, 5)) + np.eye(5)[labels] * 0.4
        return Predictions(
            split="test", labels=labels.astype(np.int32), probabilities=values / values.sum(axis=1, keepdims=True)
        )

    def f1(found: Predictions, index: int, threshold: float) -> float:
        is_class, is_found = found.labels == index, found.probabilities[:, index] >= threshold
        return float(2 * (is_class & is_found).sum() / (is_class.sum() + is_found.sum()))

    validation, test = sample(), sample()
    found = rows(validation, test, tuple("abcde"))
    assert list(found) == sorted(found, key=lambda name: found[name][0])
    for index, name in enumerate("abcde"):
        _, _, threshold, precision, recall = found[name]
        best = max(f1(validation, index, each) for each in validation.probabilities[:, index])
        assert f1(validation, index, threshold) == pytest.approx(best)
        is_class, is_found = test.labels == index, test.probabilities[:, index] >= threshold
        assert precision == pytest.approx(is_class[is_found].mean())
        assert recall == pytest.approx(is_found[is_class].mean())


def test_a_threshold_that_no_test_image_reaches() -> None:
    assert rows(of([0, 1], [0.99, 0.1]), TEST)["a"][2:] == [0.99, 0.0, 0.0]


@pytest.mark.parametrize(
    ("validation", "test", "named"),
    [
        (VALIDATION, of([0, 0], [0.9, 0.8]), []),
        (of([0, 0], [0.9, 0.8]), TEST, ["a"]),
        (of([0, 0], [0.9, 0.8]), of([1, 1], [0.9, 0.8]), []),
        (of([0], [0.9]), of([0], [0.9]), []),
        (VALIDATION, of([0, 1], [0.5, 0.5]), ["a", "b"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_classes_without_curves_are_left_out(validation: Predictions, test: Predictions, named: list[str]) -> None:
    assert sorted(rows(validation, test)) == named


def test_names_are_shown_as_they_are() -> None:
    chart, _ = curves.blocks(("<b>$x$", "_y\n"), VALIDATION, TEST)
    assert isinstance(chart, page.Chart)
    assert any("&lt;b&gt;$x$" in svg for svg in chart.svgs)
    assert not any("<b>" in svg for svg in chart.svgs)


def test_the_worst_of_a_hundred_classes_are_drawn() -> None:
    labels = np.arange(1_000, dtype=np.int32) % 100
    values = np.random.default_rng(0).random((1_000, 100)) + np.eye(100)[labels]
    predictions = Predictions(split="test", labels=labels, probabilities=values)
    chart, table = curves.blocks([str(number) for number in range(100)], predictions, predictions)
    assert isinstance(chart, page.Chart)
    assert isinstance(table, page.Table)
    assert (len(chart.svgs), len(table.rows)) == (12, 100)
    assert f">{table.rows[0][0]}</text>" in chart.svgs[0]
    assert sum(map(len, chart.svgs)) < 500_000
