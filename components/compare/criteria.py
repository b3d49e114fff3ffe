"""Criteria by which `compare` decides about a promotion."""

import dataclasses
from typing import Any

from localvertex_base.userinput.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Parameters of the comparison."""

    max_regression: float = 0.0
    """Largest accepted loss of test score against the champion, 0 to 1."""
    must_improve: bool = False
    """Whether the model must be significantly better than the champion (p < 0.05)."""
    min_compared_images: int = 100
    """Smallest number of test images that neither model has seen."""
    force_promotion: bool = False
    """Whether to promote the model regardless of both comparisons."""

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
        """Return the criteria for `outcome.note_comparison`: others make another comparison."""
        return dataclasses.asdict(self)
