"""The labels that this project gives to models and versions, and the aliases of the version in use."""

PROJECT_LABEL = ("managed-by", "vertex-gpu-training")
"""Label of each model that these pipelines register; they do not touch models without it."""
CHAMPION = "champion"
ALIASES = (CHAMPION, "default")
"""Aliases of the version in use; `default` belongs to the service, and cannot be taken from a model."""

RUN_ID, CHECKPOINT, DATASET, PROMOTION = "run-id", "checkpoint", "dataset", "promotion"
VERSION_KEYS = (RUN_ID, CHECKPOINT, DATASET, PROMOTION)
BETTER, FORCED, UNDECIDED, REFUSED = "better", "forced", "undecided", "refused"
"""Values of `promotion`: the model passed all tests, force_promotion overruled one, or there were too few test images
to tell whether the model has learnt anything, or another run has promoted a better model since the comparison."""
NOT_PROMOTED = (UNDECIDED, REFUSED)
_DIGITS = 32
"""A label's value has at most 63 characters; 32 hexadecimal digits are enough to identify content."""


def label_value(sha256: str) -> str:
    """Return the value of a label for a SHA-256 in hexadecimal digits."""
    return sha256[:_DIGITS]
