"""Decides whether a model replaces the champion, from the number of images that each of them classifies correctly."""

import math
from dataclasses import dataclass

_SIGNIFICANCE = 0.05
_POWER = 0.8
"""Probability with which `Table.smallest_difference` is found."""
_FEWEST_DISCORDANT = 6
"""With fewer images that only one model classifies correctly, even unanimous ones are not significant."""


@dataclass(frozen=True, kw_only=True)
class Table:
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
    def difference(self) -> float:
        """Gain of accuracy; below 0: a loss."""
        return (self.only_challenger - self.only_champion) / self.num_images

    @property
    def p_value(self) -> float:
        """Of the exact, two-sided McNemar test: such a difference, or a larger one, between equally good models."""
        from scipy import stats

        num_discordant = self.only_champion + self.only_challenger
        return float(stats.binomtest(self.only_challenger, num_discordant).pvalue) if num_discordant else 1.0

    @property
    def smallest_difference(self) -> float:
        """Difference of accuracy that is found (p < 0.05) with a probability of 80%, where models differ as often."""
        from scipy import stats

        num_discordant = max(self.only_champion + self.only_challenger, _FEWEST_DISCORDANT)
        # The fewest images of one model that are significant, and the share with which they are reached.
        fewest = int(stats.binom.isf(_SIGNIFICANCE / 2, num_discordant, 0.5)) + 1
        share = float(stats.beta.ppf(_POWER, fewest, num_discordant - fewest + 1))
        return num_discordant * (2 * share - 1) / self.num_images


@dataclass(frozen=True, kw_only=True)
class ClassResult:
    """The images of one class."""

    class_name: str
    num_images: int
    champion: int
    """Number that the champion classifies correctly."""
    challenger: int
    is_known: bool
    """Whether the champion knows the class; its answers are wrong if it does not."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both models' results on images that neither has seen."""

    table: Table
    classes: list[ClassResult]
    num_left_out: int
    """Test images that one of them has seen."""
    has_originals: bool
    """Whether both saw the originals, because their image sizes differ."""
    num_unanswered: tuple[int, int]
    """Images that the champion, and the new model, could not decode; they count as wrong."""

    @property
    def num_unknown(self) -> int:
        """Images of classes that the champion does not know."""
        return sum(each.num_images for each in self.classes if not each.is_known)


def decide(table: Table, *, max_regression: float, must_improve: bool) -> tuple[bool, str]:
    """Return whether the new model replaces the champion, and why.

    Args:
        table: Both models' results.
        max_regression: Loss of accuracy that is accepted, 0 to 1.
        must_improve: Whether it has to be significantly better.
    """
    found = f"{table.challenger_accuracy:.2%} against {table.champion_accuracy:.2%} on {table.num_images:,} images"
    lost, accepted = table.only_champion - table.only_challenger, max_regression * table.num_images
    if lost > accepted and not math.isclose(lost, accepted):
        return False, f"{found}: worse by {-table.difference:.2%}, more than max_regression {max_regression:.2%}"
    if must_improve and not (lost < 0 and table.p_value < _SIGNIFICANCE):
        return False, (
            f"{found}: not better with p < {_SIGNIFICANCE:g} (p = {table.p_value:.2g}), which must_improve requires"
        )
    if lost > 0:
        return True, f"{found}: worse by {-table.difference:.2%}, within max_regression {max_regression:.2%}"
    return True, f"{found}: {'better' if lost < 0 else 'as good'} (p = {table.p_value:.2g})"
