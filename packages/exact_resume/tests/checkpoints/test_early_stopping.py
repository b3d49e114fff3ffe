"""When a history of scores ends a run early."""

import dataclasses

import pytest

from exact_resume.checkpoints.checkpoints import Best
from exact_resume.checkpoints.early_stopping import EarlyStopping, Validations, with_score


def history(*scores: tuple[float, float]) -> Validations:
    return tuple(Best(step=3 * n, accuracy=accuracy, loss=loss) for n, (accuracy, loss) in enumerate(scores, 1))


@pytest.mark.parametrize(
    ("patience", "gain", "scores", "is_due"),
    [
        (1, 0.0, [], False),
        (1, 0.0, [(0.5, 1.0)], False),
        (1, 0.0, [(0.5, 1.0), (0.5, 1.0)], True),
        # For equal accuracy the loss decides, as for the best checkpoint.
        (1, 0.0, [(0.5, 1.0), (0.5, 0.9)], False),
        (1, 0.01, [(0.5, 1.0), (0.5, 0.9)], True),
        (2, 0.0, [(0.5, 1.0), (0.4, 1.0), (0.6, 1.0), (0.5, 1.0)], False),
        (2, 0.0, [(0.5, 1.0), (0.4, 1.0), (0.6, 1.0), (0.5, 1.0), (0.5, 0.1)], True),
        # Small gains add up.
        (2, 0.1, [(0.5, 1.0), (0.55, 1.0), (0.625, 1.0)], False),
        (2, 0.1, [(0.5, 1.0), (0.55, 1.0), (0.59, 1.0)], True),
        (2, 0.1, [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0)], True),
        (0, 0.0, [(0.5, 1.0)] * 50, False),
    ],
)
def test_the_history_alone_decides(
    patience: int, gain: float, scores: list[tuple[float, float]], *, is_due: bool
) -> None:
    rule = EarlyStopping(patience=patience, minimum_gain=gain)
    assert rule.is_due(history(*scores)) is is_due


def test_a_run_never_ends_in_its_first_phase_and_patience_counts_from_the_boundary_on() -> None:
    flat, rule = history(*[(0.5, 1.0)] * 6), EarlyStopping(patience=2, first_step=12)
    assert EarlyStopping(patience=2).is_due(flat[:3])
    assert [rule.is_due(flat[:number]) for number in range(1, 7)] == [False] * 5 + [True]


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_with_another_metric_its_score_decides_and_not_the_accuracy(gain: float) -> None:
    rule = EarlyStopping(patience=1, minimum_gain=gain)
    rising, falling = (
        tuple(
            dataclasses.replace(each, score=score)
            for each, score in zip(history((0.5, 1.0), (other, 1.0)), (0.5, 1.1 - other), strict=True)
        )
        for other in (0.4, 0.7)
    )
    assert not rule.is_due(rising)
    assert rule.is_due(falling)


def test_a_repeated_validation_counts_once() -> None:
    done = history((0.5, 1.0), (0.4, 1.0))
    assert with_score(done, done[-1]) == done
    assert with_score((), done[0]) == done[:1]
