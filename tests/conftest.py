"""What all tests share: a quiet TensorFlow, and the checkout's paths."""

import os
import pathlib
import sys

import pytest

# Read by TensorFlow when it is imported, in this process and in every child.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("PYTHONHASHSEED", "0")
# Set by the `make test` that runs this: a make started here would take itself for a part of that one.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    """The checkout."""
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the environment under test."""
    return sys.executable
