"""A pytest plugin for the tests of every package: a quiet environment, bytecode, and a Cloud Storage server."""

import compileall
import gc
import inspect
import os
import re
import signal
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import settings

from vertex_testing.cloud_storage.fixtures import cloud_storage as cloud_storage

# TensorFlow reads these when it is imported, in this process and in every child.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("PYTHONHASHSEED", "0")
# Cloud Storage is on loopback here: few attempts, milliseconds apart (to which TensorFlow adds up to one second).
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_RETRIES", "2")
os.environ.setdefault("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", "1000")
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_DELAY_TIME_US", "20000")
# Set by the `make test` that runs this; a make started by a test would take itself for a part of it.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)

# On a loaded machine an example may take any time. A change is judged by the same examples as the one before it;
# `--hypothesis-profile=searching` draws others.
settings.register_profile("searching", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# A shell makes its background jobs ignore Ctrl-C, and their children inherit that; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# kfp asks for the whole stack at each setting of a task, to name one function in an error. Below pytest, and with
# thousands of modules, the source lines that come with it take a third of a second.
inspect.stack = lambda context=1: [
    inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
    for frame, line in traceback.walk_stack(sys._getframe(1))
]

WRITES_NO_BYTECODE = sys.dont_write_bytecode


def pytest_configure(config: pytest.Config) -> None:
    """Compile the packages once where Python writes no bytecode: this is half of the start of most processes."""
    if WRITES_NO_BYTECODE and not hasattr(config, "workerinput"):
        for pattern in ("*/__init__.py", "packages/*/*/__init__.py"):
            for path in config.rootpath.glob(pattern):
                compileall.compile_dir(path.parent, quiet=2)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the files none of whose tests are run: what they import takes seconds, in each process."""
    if not collection_path.match("test_*.py"):
        return None
    text, chosen = collection_path.read_text(), config.option.markexpr
    marks = "".join(re.findall(r"^pytestmark = (\[[^\]]*\]|.*)$", text, flags=re.MULTILINE))
    return (
        (chosen.startswith("slow") and "slow" not in text)
        or (chosen == "not slow" and "pytest.mark.slow" in marks)
        or (chosen.endswith("not soak") and "pytest.mark.soak" in marks)
        or None
    )


def pytest_collectstart() -> None:
    """Keep the bytecode of tests, and do not let the garbage collector visit again and again what they import."""
    sys.dont_write_bytecode = False
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that have the longest tests: the last one occupies one process alone."""
    items.sort(key=lambda item: not any(mark.kwargs.get("first") for mark in item.iter_markers("slow")))


def pytest_collection_finish() -> None:
    """Collect the garbage of tests from here on, and only that."""
    sys.dont_write_bytecode = WRITES_NO_BYTECODE
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the environment under test."""
    return sys.executable
