"""The environment with Apache Beam, in whose processes the slow tests of the engines run it."""

import pathlib

import pytest


@pytest.fixture(scope="session")
def beam_python(repository: pathlib.Path) -> str:
    """The interpreter of `make venv-beam`."""
    python = repository / ".venv-beam" / "bin" / "python"
    assert python.exists(), f"{python} is missing; run: make venv-beam"
    return str(python)
