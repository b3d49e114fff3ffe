"""Judge whether a model has learnt anything: it must beat a constant answer, and guessing, on the test split.

The constant answer is the most frequent class of the training split. A guess is the model's own answers, shuffled among
the images. The reason has only the numbers of the test that decided. If there are too few test images to show that a
model is better, the verdict is `undecided`: the model is registered but not promoted.
"""

import bisect
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from trainer.models.metrics import ACCURACY, score_of
from trainer.results.significance import (
    ROUNDING,
    SIGNIFICANCE,
    Labels,
    p_better,
    p_by_chance,
    p_mcnemar,
    score_by_chance,
)

_FEWEST = 21
"""Fewest images: with one image of another class, a guess is perfect in one of 21 cases."""


class Verdict(StrEnum):
    """Whether the test split shows that a model is better than a constant answer."""

    BETTER = "better"
    UNDECIDED = "undecided"
    """There are too few test images to tell."""
    NOT_BETTER = "not-better"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The comparison of a model with the constant answer."""

    verdict: Verdict
    reason: str
    """The scores of the test that decided, as one sentence."""


def judge(
    metric: str, labels: Labels, answers: Labels, constant: int, class_names: list[str], *, left_out: str = ""
) -> Judgement:
    """Compare a model with a constant answer on the test split.

    Args:
        metric: One of `trainer.models.metrics.METRICS`.
        labels: True classes [N], 0 to K - 1.
        answers: Answers of the model [N].
        constant: The class that the constant answer names.
        class_names: K names.
        left_out: The test images that do not count, for the message.
    """
    always, num_classes, chance = np.full_like(labels, constant), len(class_names), (labels, answers, len(class_names))
    own, reference = (score_of(metric, labels, each, num_classes) for each in (answers, always))

    def found(opponent: str) -> str:
        numbers = f"{metric} {own:.4f} on {len(labels):,} test images, {reference:.4f} by {opponent}"
        return f"{numbers} (p = {p_value:.2g}{left_out and f', {left_out}'})"

    p_value, num_others = p_better(metric, labels, answers, always, num_classes), int((labels != constant).sum())
    beaten_by, error = "a constant answer", num_others / max(1, len(labels))
    reason = found(f"always answering {class_names[constant]!r}")
    if own > reference and p_value < SIGNIFICANCE:
        # Shuffling takes seconds with 100,000 images, so it comes after the other test.
        p_value = p_by_chance(metric, *chance)
        if p_value < SIGNIFICANCE:
            return Judgement(verdict=Verdict.BETTER, reason=reason)
        beaten_by, error = "guessing", 1 - score_by_chance(ACCURACY, *chance)
        reference = score_by_chance(metric, *chance)
        reason = found("its own answers, shuffled among the images")
    present = np.unique(labels)
    can_be_better = (
        p_mcnemar(num_others, 0) < SIGNIFICANCE and p_by_chance(metric, labels, labels, num_classes) < SIGNIFICANCE
    )
    enough = num_enough(error)
    if not can_be_better or (own > reference + ROUNDING and len(labels) < enough):
        way_on = (
            f"about {max(enough, _FEWEST):,} would be enough for a model with half as many errors"
            if len(present) > 1
            else f"all test images are of the class {class_names[present[0]]!r}"
        )
        return Judgement(
            verdict=Verdict.UNDECIDED,
            reason=f"too few test images to tell whether the model has learnt anything: {reason}; {way_on}",
        )
    return Judgement(verdict=Verdict.NOT_BETTER, reason=f"not better than {beaten_by}: {reason}")


def num_enough(error: float) -> int:
    """Return about how many images show that a model with half of another answer's errors is better.

    Args:
        error: Fraction of the images that the other answer gets wrong; the model's errors are spread evenly.

    Returns:
        The number of images, or 0 if no number is enough, because the other answer makes no errors.
    """
    if error <= 0:
        return 0

    def is_enough(num_images: int) -> bool:
        num_won, num_lost = (num_images * share * of for share, of in ((error, 1 - error / 2), (1 - error, error / 2)))
        return p_mcnemar(round(num_won), round(num_lost)) < SIGNIFICANCE

    highest = 1
    while not is_enough(highest):
        highest *= 2
    return bisect.bisect_left(range(highest), True, highest // 2 + 1, key=is_enough)
