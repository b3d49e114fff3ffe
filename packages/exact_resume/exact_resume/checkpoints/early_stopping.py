"""Early stopping: a pure function of the validation history, which every checkpoint contains."""

import dataclasses

from exact_resume.checkpoints.checkpoints import Best

Validations = tuple[Best, ...]
"""One score per validation, in order of their steps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """The rule by which a run ends before its last planned step."""

    patience: int = 0
    """Number of validations in a row without an improvement; 0: never."""
    minimum_gain: float = 0.0
    """Gain of the deciding score that counts as an improvement; 0: any, or an equal value with a lower loss."""
    first_step: int = 0
    """Validations up to this step never end the run."""

    def is_due(self, validations: Validations) -> bool:
        """Return whether the run ends after the last of these validations."""
        reference, num_without = Best(), 0
        for score in validations:
            is_better = score.step <= self.first_step or self._improves(reference, score)
            reference, num_without = (score, 0) if is_better else (reference, num_without + 1)
        return 0 < self.patience <= num_without

    def describe(self) -> str:
        """Return the reason for such an end in a few words."""
        gain = f" of {self.minimum_gain:g}" if self.minimum_gain else ""
        return f"no improvement{gain} in {self.patience} validation{'s' if self.patience > 1 else ''}"

    def _improves(self, reference: Best, score: Best) -> bool:
        if self.minimum_gain and reference.step:
            return score.value >= reference.value + self.minimum_gain
        return reference.is_beaten_by(score)


def with_score(validations: Validations, score: Best) -> Validations:
    """Return the history with another score, which replaces an earlier score for the same step."""
    return (*(each for each in validations if each.step < score.step), score)
