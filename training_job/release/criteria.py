"""Criteria of a promotion, which `compare` decides by."""

import dataclasses
from typing import Any

from vertex_gpu_training.userinput.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Parameters of the comparison."""

    max_regression: float = 0.0
    """Loss of test accuracy against the champion, 0 to 1, that is accepted."""
    must_improve: bool = False
    """Whether the model must be better than the champion, with an exact McNemar p < 0.05."""
    min_compared_images: int = 100
    """Smallest number of test images that neither model has seen."""
    force_promotion: bool = False
    """Promote the model although it is not better than a constant answer, or whatever the comparison shows."""

    def __post_init__(self) -> None:
        """Refuse values that no comparison can be decided by.

        Raises:
            UserError: A value is out of its range.
        """
        if not isinstance(self.max_regression, int | float) or not 0 <= self.max_regression <= 1:
            raise UserError(f"max_regression is {self.max_regression}; expected a number from 0 to 1, e.g. 0.01")
        if not isinstance(self.min_compared_images, int) or self.min_compared_images < 1:
            raise UserError(f"min_compared_images is {self.min_compared_images}; expected a whole number from 1")

    def noted(self) -> dict[str, Any]:
        """Return the criteria for `trainer.checkpoints.outcome.note_comparison`: others make another comparison."""
        return dataclasses.asdict(self)
