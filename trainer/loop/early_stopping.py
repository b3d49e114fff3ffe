"""Early stopping: a pure function of the validation history, which every checkpoint contains."""

from collections.abc import Sequence

from trainer.checkpoints.checkpoints import Best

Validations = tuple[Best, ...]
"""One score per validation, in order of their steps."""


def with_score(validations: Validations, score: Best) -> Validations:
    """Return the history with another score; it replaces that of a validation that was repeated."""
    return (*(each for each in validations if each.step < score.step), score)


def has_stalled(validations: Sequence[Best], patience: int) -> bool:
    """Return whether the last `patience` validations brought no new best; never if `patience` is 0."""
    best, num_without = Best(), 0
    for score in validations:
        is_best = best.is_beaten_by(score.accuracy, score.loss)
        best, num_without = (score, 0) if is_best else (best, num_without + 1)
    return 0 < patience <= num_without


def stop_reason(*, step: int, num_steps: int, patience: int) -> str:
    """Return in a few words why a finished run ended at a step."""
    return f"no new best in {patience} validations" if step < num_steps else "all planned steps are done"
