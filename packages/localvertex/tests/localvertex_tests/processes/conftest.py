"""Fixtures of the tests of processes."""

import pytest

from localvertex.processes.masks.mask import Mask


@pytest.fixture
def mask() -> None:
    """Skip a test where bubblewrap is not installed or cannot run."""
    if problem := Mask().warning:
        pytest.skip(problem)
