"""Criteria by which `compare` decides about a promotion."""

import dataclasses

from trainer.settings import FRACTION, POSITIVE, check_all, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Criteria of a promotion; only the last field is a parameter of the pipeline."""

    max_regression: float = setting(
        "Largest accepted loss of test score against the champion, 0 to 1.", FRACTION, default=0.0
    )
    must_improve: bool = setting("Replace the champion only by a significantly better model (p < 0.05).", default=False)
    min_compared_images: int = setting("Fewest unseen test images that allow a comparison.", POSITIVE, default=100)
    force_promotion: bool = False
    """Whether to promote the model regardless of both comparisons."""

    def __post_init__(self) -> None:
        """Refuse values that no comparison can be decided by.

        Raises:
            UserError: A value is out of its range.
        """
        check_all(self)
