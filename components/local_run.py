"""Whether a step runs on a laptop."""

import os

_OF_LOCALVERTEX = "LOCALVERTEX_STEP"
"""A variable of each Python step that localvertex runs."""


def is_local_run() -> bool:
    """Return whether localvertex runs this step; such a run uses no Google service and no credentials."""
    return _OF_LOCALVERTEX in os.environ
