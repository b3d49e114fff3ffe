"""Shared by the tests of all three import packages."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def package() -> Path:
    """The folder of this package."""
    return Path(__file__).resolve().parents[1]
