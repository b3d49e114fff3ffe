"""Fixtures' data that is made once per test run, for all processes of pytest-xdist."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first process to ask fills; the others wait for it.

    Args:
        factory: pytest's factory of temporary folders.
        name: The folder's name, one per content.
        make: Fills the folder. When it raises, the next process that asks tries again.

    Returns:
        The folder. Tests only read it, or copy it first.
    """
    folder = run_folder(factory) / name
    made = folder.with_suffix(".made")
    with locked(folder.with_suffix(".lock")):
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file against all other processes of the test run."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of the test run, which all its processes share."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder
