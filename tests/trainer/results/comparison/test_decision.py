"""When a model replaces the champion: numbers that are checked against the definition of the exact McNemar test."""

from math import comb

import numpy as np
import pytest
from scipy import stats

from trainer.results.comparison.decision import ClassResult, Comparison, ContingencyTable, decide
from trainer.results.report import comparison as report
from vertex_testing.html import Page


def table(both: int, only_champion: int, only_challenger: int, neither: int = 0) -> ContingencyTable:
    return ContingencyTable(both=both, only_champion=only_champion, only_challenger=only_challenger, neither=neither)


def visible(html: str) -> str:
    return " ".join(" ".join(Page(html).texts).split())


def tail(num_successes: int, num_trials: int, probability: float = 0.5) -> float:
    """P(X >= num_successes)."""
    return sum(
        comb(num_trials, k) * probability**k * (1 - probability) ** (num_trials - k)
        for k in range(num_successes, num_trials + 1)
    )


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (0, 5), (0, 6), (3, 12), (20, 20), (30, 12)])
def test_the_p_value_is_that_of_a_fair_coin(lost: int, gained: int) -> None:
    expected = min(1.0, 2 * tail(max(lost, gained), lost + gained))
    assert table(100, lost, gained, 7).p_value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found", "max_regression", "must_improve", "is_promoted", "reason"),
    [
        (table(90, 5, 5), 0.0, False, True, "95.00% against 95.00% on 100 images: as good (p = 1)"),
        (table(90, 6, 4), 0.0, False, False, "94.00% against 96.00% on 100 images: worse by 2.00%, more than"),
        # Exactly the accepted loss, which a float would miss: 0.07 * 100 is a little more than 7, 0.29 * 100 less.
        (table(60, 29, 0, 11), 0.29, False, True, "worse by 29.00%, within max_regression 29.00%"),
        (table(90, 2, 1, 7), 0.01, False, True, "within max_regression 1.00%"),
        (table(90, 3, 1, 6), 0.01, False, False, "more than max_regression 1.00%"),
        (table(90, 0, 5, 5), 0.0, True, False, "not better with p < 0.05 (p = 0.062), which must_improve requires"),
        (table(90, 0, 6, 4), 0.0, True, True, "better (p = 0.031)"),
        # Significantly different, but worse.
        (table(80, 20, 0), 1.0, True, False, "which must_improve requires"),
    ],
)
def test_the_decision_and_its_reason(
    found: ContingencyTable, max_regression: float, must_improve: bool, is_promoted: bool, reason: str
) -> None:
    decided = decide(found, max_regression=max_regression, must_improve=must_improve, scores=found.scores)
    assert decided[0] is is_promoted
    assert reason in decided[1]


def simulated_power(num_images: int, num_discordant: int, difference: float) -> float:
    """Return how often the exact test finds a difference, in new test splits of models that differ as often."""
    rate, rng = num_discordant / num_images, np.random.default_rng(0)
    shares = [(rate + difference) / 2, (rate - difference) / 2, 1 - rate]
    won, lost, _ = rng.multinomial(num_images, shares, size=20_000).T
    return float(np.mean((won > lost) & (2 * stats.binom.sf(won - 1, won + lost, 0.5) < 0.05)))


@pytest.mark.parametrize(
    ("num_images", "lost", "gained"), [(180, 4, 5), (180, 3, 8), (200, 10, 30), (2000, 60, 50), (50_000, 900, 800)]
)
def test_the_smallest_difference_is_found_in_four_of_five_comparisons(num_images: int, lost: int, gained: int) -> None:
    """The number of images on which the models differ varies, too."""
    smallest = table(num_images - lost - gained, lost, gained).smallest_difference
    assert smallest is not None
    assert simulated_power(num_images, lost + gained, smallest) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("num_images", "lost", "gained"), [(100, 0, 0), (180, 0, 6), (180, 4, 3), (10_000, 3, 3)])
def test_too_few_images_on_which_models_differ_show_no_difference(num_images: int, lost: int, gained: int) -> None:
    assert table(num_images - lost - gained, lost, gained).smallest_difference is None
    assert simulated_power(num_images, lost + gained, (lost + gained) / num_images) < 0.8


def test_more_images_show_smaller_differences() -> None:
    many, few = table(1800, 50, 50, 100).smallest_difference, table(180, 5, 5, 10).smallest_difference
    assert many is not None
    assert few is not None
    assert many < few


def test_the_page_has_the_table_the_unknown_classes_and_what_the_number_of_images_shows() -> None:
    classes = [
        ClassResult(class_name="<cat>", num_images=90, champion=88, challenger=85),
        ClassResult(class_name="dog", num_images=20, champion=0, challenger=20),
    ]
    found = Comparison(
        table=table(80, 8, 25, 7),
        scores=table(80, 8, 25, 7).scores,
        classes=classes,
        num_left_out=3,
        has_originals=True,
        unknown={"<fox>": 17, "hen": 3},
    )
    html = report.render(champion="models/7@2", is_promoted=True, reason="better & bigger", comparison=found)
    shown = visible(html)
    for expected in (
        "Promoted",
        "better & bigger",
        "models/7@2",
        "new model ↓ champion → correct wrong correct 80 25 wrong 8 7",
        "accuracy metric",
        "3 left out, seen before",
        "20 left out, class new to the champion",
        "20 images were left out, because the champion does not know their classes: '<fox>', 'hen'.",
        "dog 20 0 20 20",
        "<cat> -3 88 85 90",
        "Both models saw the originals",
        f"a difference of {found.table.smallest_difference:.2%} is found",
    ):
        assert expected in shown
    assert "<cat>" not in html
    assert "<fox>" not in html
    assert report.metrics(found)["num_unknown_to_champion"] == 20
    assert report.metrics(found)["num_left_out"] == 3


def test_a_few_images_show_nothing() -> None:
    """Six of them would have to differ for p < 0.05."""
    few = table(2, 0, 0, 0)
    found = Comparison(table=few, scores=few.scores, classes=[])
    shown = visible(report.render(champion="models/7@2", is_promoted=True, reason="as good", comparison=found))
    assert "Too few to tell: only one of the models classifies 0 of 2 images correctly." in shown
    assert "smallest_difference" not in report.metrics(found)
    assert "a difference of" not in shown


def test_the_page_without_a_comparison_has_the_reason() -> None:
    shown = visible(report.render(champion="", is_promoted=True, reason="no champion", comparison=None))
    assert "The new model was not compared" in shown
    assert "no champion" in shown
