"""Judge whether a model has learnt anything: it must beat a constant answer on the test split.

The constant answer is the most frequent class of the training split. If there are too few test images to show that a
model is better, the verdict is `undecided`: the model is registered but not promoted.
"""

import bisect
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from trainer.data.dataset import Dataset
from trainer.models.metrics import score_of
from trainer.results.significance import SIGNIFICANCE, Labels, p_better, p_by_chance, p_mcnemar

_FEWEST = 21
"""With one image of another class, a guess is perfect in one of so many cases."""


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
    """One sentence with both scores."""


def distinct(data: Dataset, split: str) -> list[int]:
    """Return the positions of a split's images in the stored order; of copies in one class only the first.

    Copies of an image have one answer, so that each would count as further evidence. The shards must be on this
    machine.
    """
    first: dict[tuple[str, int], int] = {}
    for position, record in enumerate(data.records(split)):
        first.setdefault((record.figures.content_hash, record.label), position)
    return list(first.values())


def judge(
    metric: str, labels: Labels, answers: Labels, constant: int, class_names: list[str], *, num_copies: int = 0
) -> Judgement:
    """Compare a model with a constant answer on the test split.

    Args:
        metric: One of `trainer.models.metrics.METRICS`.
        labels: True classes [N], 0 to K - 1.
        answers: Answers of the model [N].
        constant: The class that the constant answer names.
        class_names: K names.
        num_copies: Test images that are left out, because they are copies of others.
    """
    always, num_classes = np.full_like(labels, constant), len(class_names)
    own, baseline = (score_of(metric, labels, each, num_classes) for each in (answers, always))
    p_value = p_better(metric, labels, answers, always, num_classes)
    copies = f", {num_copies:,} copies left out" if num_copies else ""
    found = (
        f"{metric} {own:.4f} on {len(labels):,} test images, {baseline:.4f} by always answering"
        f" {class_names[constant]!r} (p = {p_value:.2g}{copies})"
    )
    beats_constant = own > baseline and p_value < SIGNIFICANCE
    # Shuffling takes seconds with 100,000 images, so it comes last in each condition.
    if beats_constant and p_by_chance(metric, labels, answers, num_classes) < SIGNIFICANCE:
        return Judgement(verdict=Verdict.BETTER, reason=found)
    present, num_others = np.unique(labels), int((labels != constant).sum())
    can_be_better = (
        p_mcnemar(num_others, 0) < SIGNIFICANCE and p_by_chance(metric, labels, labels, num_classes) < SIGNIFICANCE
    )
    enough = num_enough(num_others / max(1, len(labels)))
    if not can_be_better or (own > baseline and len(labels) < enough):
        way_on = (
            f"about {max(enough, _FEWEST):,} would be enough for a model with half as many errors"
            if len(present) > 1
            else f"all test images are of the class {class_names[present[0]]!r}"
        )
        return Judgement(
            verdict=Verdict.UNDECIDED,
            reason=f"too few test images to tell whether the model has learnt anything: {found}; {way_on}",
        )
    guess = "guessing: its own answers, shuffled among the images, are as good"
    beaten_by = guess if beats_constant else "a constant answer"
    return Judgement(verdict=Verdict.NOT_BETTER, reason=f"not better than {beaten_by}: {found}")


def num_enough(error: float) -> int:
    """Return about how many images show that a model with half of a constant answer's errors is better.

    Args:
        error: Fraction of the images that the constant answer gets wrong; the model's errors are spread evenly.

    Returns:
        The number of images, or 0 if no number is enough, because the constant answer makes no errors.
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
