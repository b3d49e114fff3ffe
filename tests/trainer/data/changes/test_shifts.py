"""Shifts: the test is that of scipy, and neither chance, many classes nor a large sample raises an alarm."""

import numpy as np
import pytest
from scipy import stats

from trainer.data.changes import measures, shifts
from trainer.data.changes.measures import Distributions
from trainer.data.changes.shifts import ALL, ShiftTest


def sampled(values: dict[str, list[int]]) -> Distributions:
    """Return class -> bins of brightness as distributions, with the other measures constant."""
    found = Distributions()
    for label, numbers in values.items():
        for number in numbers:
            found.add(label, (number, 5, 5))
    return found


def normal(seed: int, count: int, mean: float = 60.0, deviation: float = 10.0) -> list[int]:
    """Return bins of normally distributed brightness."""
    drawn = np.random.default_rng(seed).normal(mean, deviation, count)
    return [int(value) for value in np.clip(drawn, 0, measures.NUM_BINS - 1)]


def of_all(before: Distributions, now: Distributions) -> list[ShiftTest]:
    """Compare without new images."""
    return shifts.compare(before, now, Distributions())


def test_distance_and_p_value_are_those_of_scipy() -> None:
    before, now = normal(1, 400), normal(2, 500, mean=63)
    found = of_all(sampled({"a": before}), sampled({"a": now}))[0]
    expected = stats.ks_2samp(before, now, method="asymp")
    assert found.distance == pytest.approx(expected.statistic)
    # Corrected for 6 tests: brightness has the smallest value twice, overall and in its class.
    assert found.p_value / 6 == pytest.approx(stats.kstwobign.sf(expected.statistic * np.sqrt(400 * 500 / 900)))
    assert found.p_value / 6 == pytest.approx(expected.pvalue, rel=0.2)


def test_many_classes_of_the_same_distribution_raise_no_alarm() -> None:
    """Without the correction, 1 in 100 of the 400 classes would."""
    before, now = ({f"c{n}": normal(n + base, 60) for n in range(400)} for base in (0, 1000))
    found = of_all(sampled(before), sampled(now))
    assert len(found) == 401 * 3
    assert not any(each.is_shift for each in found)


def test_a_large_sample_needs_an_effect_too() -> None:
    before, now = normal(1, 100_000), normal(2, 100_000, mean=61)
    found = of_all(sampled({"a": before}), sampled({"a": now}))[0]
    assert found.p_value < 1e-50
    assert not found.is_shift


def test_small_samples_are_not_tested() -> None:
    few, many = sampled({"a": [10] * 29}), sampled({"a": [100] * 5000})
    assert of_all(few, many) == of_all(many, few) == of_all(Distributions(), many) == []


def test_one_shifted_class_among_many_is_found() -> None:
    before = {f"c{n}": normal(n, 200) for n in range(50)}
    now = before | {"c7": normal(99, 200, mean=72)}
    found = [each for each in of_all(sampled(before), sampled(now)) if each.is_shift]
    assert [(each.class_name, each.name, each.sample) for each in found] == [("c7", "brightness", ALL)]
    assert "class 'c7', all images: median 1" in found[0].describe()


@pytest.mark.parametrize(("edge", "lower", "upper"), [(1, 1, 1.1), (640, 600, 700), (10**9, 60_000, 66_000)])
def test_size_has_bins_of_an_eighth_of_an_octave(edge: int, lower: float, upper: float) -> None:
    line = {"pixel_sums": [0] * 3, "pixel_sums_of_squares": [0] * 3, "width": edge, "height": 1}
    brightness, contrast, size = measures.bins(line, 64)
    assert (brightness, contrast) == (0, 0)
    assert lower <= measures.value_of(2, size) <= upper


def test_brightness_and_contrast_of_an_image() -> None:
    half = {"pixel_sums": [32 * 255] * 3, "pixel_sums_of_squares": [32 * 255**2] * 3, "width": 1, "height": 1}
    brightness, contrast, _ = measures.bins(half, 64)
    assert measures.value_of(0, brightness) == pytest.approx(127.5, abs=1)
    assert measures.value_of(1, contrast) == pytest.approx(127.5, abs=1)
