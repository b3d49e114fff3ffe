"""Fixtures of localvertex's tests for this project's code that runs under it."""

from localvertex_tests.conftest import sdk as sdk
from localvertex_tests.credentials.conftest import (
    metadata as metadata,
    planted as planted,
    with_planted as with_planted,
)
