"""Which of two models is better, from their scores on the same images; `components/compare` decides what follows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trainer.models.metrics import ACCURACY, confusion_matrix, score_of
from trainer.results.significance import SIGNIFICANCE, Labels, p_differs

_POWER = 0.8
"""Probability with which a test finds `ContingencyTable.smallest_difference`."""
_NEGLIGIBLE = 1e-9
"""Numbers of images that are less probable, all together, are left out."""
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Both models' scores in the metric that decides, 0 to 1."""

    metric: str
    champion: float
    challenger: float
    p_value: float
    """Two-sided: the probability of this difference or a larger one between equally good models."""

    @property
    def difference(self) -> float:
        """Gain of the score; negative for a loss."""
        found = self.challenger - self.champion
        return found if abs(found) > _ROUNDING else 0.0


@dataclass(frozen=True, kw_only=True)
class ContingencyTable:
    """Number of images by who classifies them correctly."""

    both: int
    only_champion: int
    only_challenger: int
    neither: int

    @property
    def num_images(self) -> int:
        """All images."""
        return self.both + self.only_champion + self.only_challenger + self.neither

    @property
    def champion_accuracy(self) -> float:
        """Accuracy of the champion, 0 to 1."""
        return (self.both + self.only_champion) / self.num_images

    @property
    def challenger_accuracy(self) -> float:
        """Accuracy of the new model, 0 to 1."""
        return (self.both + self.only_challenger) / self.num_images

    @property
    def p_value(self) -> float:
        """P value of the exact, two-sided McNemar test: such a difference, or a larger one, between equal models."""
        from scipy import stats

        num_discordant = self.only_champion + self.only_challenger
        return float(stats.binomtest(self.only_challenger, num_discordant).pvalue) if num_discordant else 1.0

    @property
    def scores(self) -> Scores:
        """The accuracies of both models."""
        return Scores(
            metric=ACCURACY,
            champion=self.champion_accuracy,
            challenger=self.challenger_accuracy,
            p_value=self.p_value,
        )

    @property
    def smallest_difference(self) -> float | None:
        """Difference of accuracy that a test finds (p < 0.05) with a probability of 80%; None if there is none.

        The models differ on as large a share of images as these. The number of such images varies from test split to
        test split, so the probability is the mean over all numbers, not that for the number that was found.
        """
        from scipy import optimize

        num_discordant = self.only_champion + self.only_challenger
        if _power(self.num_images, num_discordant, 1.0) < _POWER:
            return None
        share = optimize.brentq(lambda each: _power(self.num_images, num_discordant, each) - _POWER, 0.5, 1.0)
        return float(num_discordant * (2 * share - 1) / self.num_images)


def _power(num_images: int, num_discordant: int, share: float) -> float:
    """Return the probability that McNemar's exact test finds that one model is better.

    Args:
        num_images: All images.
        num_discordant: Number of images, on average, that only one of the models classifies correctly.
        share: Share of these that the better model classifies correctly, 0.5 to 1.
    """
    from scipy import stats

    number = stats.binom(num_images, num_discordant / num_images)
    counts = np.arange(number.ppf(_NEGLIGIBLE), number.isf(_NEGLIGIBLE) + 1)
    fewest = stats.binom.isf(SIGNIFICANCE / 2, counts, 0.5) + 1
    return float((number.pmf(counts) * stats.binom.sf(fewest - 1, counts, share)).sum())


@dataclass(frozen=True, kw_only=True)
class ClassResult:
    """The images of one class."""

    class_name: str
    num_images: int
    champion: int
    """Number that the champion classifies correctly."""
    challenger: int


@dataclass(frozen=True, kw_only=True)
class Fall:
    """The scores of a champion that has lost some of its score since its export."""

    metric: str
    recorded: float
    now: float
    num_own: int
    """Compared images that were its test images."""
    own: tuple[float, float]
    """Scores of the champion and the new model on these."""

    def __str__(self) -> str:
        found = f"the champion had {self.metric} {self.recorded:.2%} before its export, and has {self.now:.2%} now; "
        if not self.num_own:
            return f"{found}none of its own test images is left"
        first, second = self.own
        return f"{found}on {self.num_own:,} of its own test images it has {first:.2%}, the new model {second:.2%}"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both models' results on images that neither has seen, of classes that both know."""

    table: ContingencyTable
    scores: Scores
    classes: list[ClassResult]
    num_left_out: int = 0
    """Test images that one of them has seen."""
    num_copies: int = 0
    """Test images that have the pixels of others."""
    has_originals: bool = False
    """Whether both saw the originals, because their image sizes differ."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Class that the champion does not know -> number of its images, which were left out."""
    fall: Fall | None = None
    """None: the champion has not lost much of its score, or it is unknown."""

    @property
    def num_unknown(self) -> int:
        """Images that were left out, because the champion does not know their class."""
        return sum(self.unknown.values())


def scores_of(
    metric: str, labels: Labels, champion: Labels, challenger: Labels, num_classes: int
) -> tuple[ContingencyTable, Scores]:
    """Compare the answers of both models on the same examples.

    Args:
        metric: One of `trainer.models.metrics.METRICS`.
        labels: True classes [N], 0 to K - 1.
        champion: Answers of the champion [N]; K means an answer that is not one of the classes.
        challenger: Answers of the new model [N].
        num_classes: K.
    """
    counts = confusion_matrix(champion == labels, challenger == labels, 2).tolist()
    (neither, only_challenger), (only_champion, both) = counts
    table = ContingencyTable(both=both, only_champion=only_champion, only_challenger=only_challenger, neither=neither)
    if metric == ACCURACY:
        return table, table.scores
    return table, Scores(
        metric=metric,
        champion=score_of(metric, labels, champion, num_classes),
        challenger=score_of(metric, labels, challenger, num_classes),
        p_value=p_differs(metric, labels, challenger, champion, num_classes),
    )


def decide(table: ContingencyTable, *, max_regression: float, must_improve: bool, scores: Scores) -> tuple[bool, str]:
    """Return whether the new model replaces the champion, and why.

    Args:
        table: Both models' results.
        max_regression: Largest accepted loss of the score, 0 to 1.
        must_improve: Whether it has to be significantly better.
        scores: Scores in the metric that decides.
    """
    name = "" if scores.metric == ACCURACY else f"{scores.metric} "
    found = f"{name}{scores.challenger:.2%} against {scores.champion:.2%} on {table.num_images:,} images"
    lost = -scores.difference
    if lost > max_regression and not math.isclose(lost, max_regression, abs_tol=1e-12):
        return False, f"{found}: worse by {lost:.2%}, more than max_regression {max_regression:.2%}"
    if must_improve and not (lost < 0 and scores.p_value < SIGNIFICANCE):
        return False, (
            f"{found}: not better with p < {SIGNIFICANCE:g} (p = {scores.p_value:.2g}), which must_improve requires"
        )
    if lost > 0:
        return True, f"{found}: worse by {lost:.2%}, within max_regression {max_regression:.2%}"
    return True, f"{found}: {'better' if lost < 0 else 'as good'} (p = {scores.p_value:.2g})"
