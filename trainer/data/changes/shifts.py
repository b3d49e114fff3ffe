"""Tests whether the distributions of brightness, contrast and size have shifted.

The test is the two-sample Kolmogorov-Smirnov test on histograms, corrected for the number of tests by Holm's method.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from localvertex_base.userinput.spelling import quote
from trainer.data.changes.measures import MEASURES, Distributions, value_of

MAX_P_VALUE = 0.01
"""Limit of the corrected p-value: at most one comparison in a hundred has a false alarm."""
MIN_DISTANCE = 0.1
"""Smallest distance of a shift; a smaller one has little effect, even if it is significant."""
MIN_IMAGES = 30
"""Samples with fewer images are not tested."""
ALL, NEW = "all images", "added or replaced"
_OVERALL = ""


@dataclass(frozen=True, kw_only=True)
class ShiftTest:
    """The test of one measure on two samples."""

    sample: str
    """ALL compares all images before and now; NEW compares all images before with those whose content is new."""
    class_name: str
    """Empty for all classes together."""
    measure: int
    """Index into MEASURES."""
    num_before: int
    num_now: int
    distance: float
    """The largest difference of the two cumulative distributions, 0 to 1."""
    p_value: float
    """P-value of the distance, corrected for the number of tests."""
    median_before: float
    median_now: float

    @property
    def is_shift(self) -> bool:
        """Whether the difference is significant and large enough."""
        return self.p_value <= MAX_P_VALUE and self.distance >= MIN_DISTANCE

    @property
    def name(self) -> str:
        """Name of the measure."""
        return MEASURES[self.measure]

    def describe(self) -> str:
        """Return it as one line."""
        medians = f"median {self.median_before:.0f} before, {self.median_now:.0f} now"
        where = f"class {quote(self.class_name)}" if self.class_name else "all classes"
        return f"{self.name} of {where}, {self.sample}: {medians}, distance {self.distance:.2f}, p {self.p_value:.1e}"


def compare(before: Distributions, now: Distributions, new: Distributions) -> list[ShiftTest]:
    """Test each class and all classes together.

    Args:
        before: All images of the previous dataset.
        now: All images of the new dataset.
        new: Images of the new dataset whose content is new.
    """
    tests = []
    for label in [_OVERALL, *sorted(before.labels() & now.labels())]:
        for sample, after in ((ALL, now), (NEW, new)):
            for measure, counts in enumerate(zip(*(_counts(each, label) for each in (before, after)), strict=True)):
                if (found := _test(counts[0], counts[1], sample, label, measure)) is not None:
                    tests.append(found)
    return _correct(tests)


def _counts(distributions: Distributions, label: str) -> npt.NDArray[np.int64]:
    return distributions.overall() if label == _OVERALL else distributions.of(label)


def _test(
    before: npt.NDArray[np.int64], after: npt.NDArray[np.int64], sample: str, label: str, measure: int
) -> ShiftTest | None:
    """Compare two histograms; None if they have too few images."""
    from scipy.special import kolmogorov

    num_before, num_after = int(before.sum()), int(after.sum())
    if min(num_before, num_after) < MIN_IMAGES:
        return None
    distance = float(np.abs(before.cumsum() / num_before - after.cumsum() / num_after).max())
    effective = num_before * num_after / (num_before + num_after)
    return ShiftTest(
        sample=sample,
        class_name=label,
        measure=measure,
        num_before=num_before,
        num_now=num_after,
        distance=distance,
        p_value=float(kolmogorov(math.sqrt(effective) * distance)),
        median_before=_median(before, measure),
        median_now=_median(after, measure),
    )


def _median(counts: npt.NDArray[np.int64], measure: int) -> float:
    return value_of(measure, int(np.searchsorted(counts.cumsum(), counts.sum() / 2)))


def _correct(tests: Sequence[ShiftTest]) -> list[ShiftTest]:
    """Correct the p-values by Holm's method, which holds for tests that depend on each other, and keep the order."""
    corrected, largest = list(tests), 0.0
    ranked = sorted(range(len(tests)), key=lambda number: tests[number].p_value)
    for rank, number in enumerate(ranked):
        largest = max(largest, min(1.0, (len(tests) - rank) * tests[number].p_value))
        corrected[number] = replace(tests[number], p_value=largest)
    return corrected
