"""A champion that has lost its score: exchanged folders end the comparison, images of another kind do not."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trainer.results.comparison.comparison import ChampionRecord
from trainer.results.comparison.not_comparable import NotComparable

ABCD = ("a", "b", "c", "d")
Answers = npt.NDArray[Any]


def record(score: float | None, metric: str = "accuracy") -> ChampionRecord:
    return ChampionRecord(metric=metric, score=score, test_images=np.empty(0, np.uint64))


def answered(random: np.random.Generator, labels: Answers, share: float, num_classes: int) -> Answers:
    """Return answers that are right with a probability, and any other otherwise."""
    others = (labels + random.integers(1, num_classes, len(labels))) % num_classes
    return np.where(random.random(len(labels)) < share, labels, others)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([1, 0, 2, 3], "knows 'a' as 'b', 'b' as 'a', and has"),
        ([1, 2, 0, 3], "knows 'a' as 'b', 'b' as 'c', 'c' as 'a', and has"),
        ([1, 0, 3, 2], "knows 'a' as 'b', 'b' as 'a', 'c' as 'd', 'd' as 'c', and has"),
    ],
)
@pytest.mark.parametrize("metric", ["accuracy", "macro-f1", "balanced-accuracy"])
def test_exchanged_names_are_refused_also_if_the_images_are_a_little_harder(
    names: list[int], message: str, metric: str
) -> None:
    random = np.random.default_rng(7)
    for share in (0.97, 0.9):
        labels = random.choice(4, 300, p=[0.4, 0.3, 0.2, 0.1])
        answers = np.array(names)[answered(random, labels, share, 4)]
        for score in (0.97, None):
            with pytest.raises(NotComparable, match=message) as refused:
                record(score, metric).refuse_exchanged(labels, answers, ABCD)
            assert refused.value.is_final
            assert ("97.00% before its export" in str(refused.value)) is (score is not None)


@pytest.mark.parametrize("num_classes", [2, 4, 10])
@pytest.mark.parametrize("share", [1.0, 0.97, 0.63, 0.5, 0.3, 0.1])
def test_a_champion_that_has_merely_fallen_is_compared(num_classes: int, share: float) -> None:
    """In two classes, one that is right in 30% is right in 70% with the names exchanged, and had 97%."""
    random, names = np.random.default_rng(8), tuple(map(str, range(num_classes)))
    # Of two classes, one that is right in 10% has been exchanged.
    share = max(share, 0.3) if num_classes == 2 else share
    for _ in range(300):
        labels = random.integers(0, num_classes, int(random.integers(100, 500)))
        record(0.97).refuse_exchanged(labels, answered(random, labels, share, num_classes), names)
        # Of an earlier version, without a record.
        if num_classes > 2 or share > 0.5:
            record(None).refuse_exchanged(labels, answered(random, labels, share, num_classes), names)


def test_a_champion_that_always_answers_one_class_has_no_exchanged_classes() -> None:
    """Named the other class, it would be right as often as it was."""
    labels = np.repeat([0, 1], [10, 90])
    record(0.9).refuse_exchanged(labels, np.zeros(100, np.int64), ("a", "b"))


def test_single_images_do_not_show_an_exchange() -> None:
    labels = np.repeat([0, 1, 2, 3], [98, 100, 1, 1])
    record(1.0).refuse_exchanged(labels, np.array([0, 1, 3, 2])[labels], ABCD)
