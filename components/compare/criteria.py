"""Criteria by which `compare` decides about a promotion."""

import dataclasses

from components.train.machines import setting
from localvertex._base.userinput.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Criteria of a promotion; only the last field is a parameter of the pipeline."""

    max_regression: float = setting("Largest accepted loss of test score against the champion, 0 to 1.", default=0.0)
    must_improve: bool = setting("Replace the champion only by a significantly better model (p < 0.05).", default=False)
    min_compared_images: int = setting("Fewest unseen test images that allow a comparison.", default=100)
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
