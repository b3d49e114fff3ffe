"""What all tests share: a quiet TensorFlow, the checkout's paths, prepared data and compiled files."""

import compileall
import gc
import os
import pathlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from tests.support.job import EXACT_RUN, Job
from tests.support.server import Server
from tests.support.shared import locked, make_once, run_folder
from vertex_testing.cloud_storage.fixtures import cloud_storage as cloud_storage

TRAINING_IMAGE = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64

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

# On a loaded machine an example may take any time.
settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

# A shell makes its background jobs ignore Ctrl-C, and their children inherit that; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

WRITES_NO_BYTECODE = sys.dont_write_bytecode
OWN_PACKAGES = (
    "accelerators",
    "components",
    "packages/exact_resume/exact_resume",
    "localvertex",
    "pipelines",
    "trainer",
    "training_job",
    "vertex_gpu_training",
)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the checkout once where Python writes no bytecode: this is half of the start of most processes."""
    if WRITES_NO_BYTECODE and not hasattr(config, "workerinput"):
        for package in OWN_PACKAGES:
            compileall.compile_dir(pathlib.Path(__file__).parent.parent / package, quiet=2)


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
def repository() -> pathlib.Path:
    """The checkout."""
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the environment under test."""
    return sys.executable


@pytest.fixture(scope="session")
def gcloud_folder(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder for PATH with the fake gcloud."""
    gcloud = tmp_path_factory.mktemp("bin") / "gcloud"
    program = repository / "tests" / "support" / "gcloud.py"
    gcloud.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(program))} "$@"\n')
    gcloud.chmod(0o755)
    return gcloud.parent


@pytest.fixture
def build_folder(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The checkout's build/ for this test alone: tests that compile there take turns."""
    with locked(run_folder(tmp_path_factory) / "build.lock"):
        yield repository / "build"


@pytest.fixture(scope="session")
def compiled_training(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image training pipeline as `python compile.py` writes it, without an image; the YAML file is beside it."""
    return _compile_once(repository, tmp_path_factory, "compiled")


@pytest.fixture(scope="session")
def compiled_training_for_image(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image training pipeline compiled for TRAINING_IMAGE."""
    return _compile_once(repository, tmp_path_factory, "compiled-for-image", "--image", TRAINING_IMAGE)


def _compile_once(repository: pathlib.Path, factory: pytest.TempPathFactory, name: str, *options: str) -> pathlib.Path:
    def make(folder: pathlib.Path) -> None:
        words = [sys.executable, "compile.py", "--output-dir", str(folder), *options]
        subprocess.run(words, cwd=repository, check=True, capture_output=True)

    return make_once(factory, name, make) / "image_training.json"


@pytest.fixture(scope="session")
def digits_directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A prepared dataset of 300 digits at 16x16 pixels."""

    def make(folder: pathlib.Path) -> None:
        from trainer.prepare import prepare

        prepare(
            source="digits",
            output_directory=str(folder / "dataset"),
            report_path=str(folder / "report.html"),
            image_size=16,
            max_examples=300,
        )

    return make_once(tmp_path_factory, "digits", make) / "dataset"


@pytest.fixture(scope="session")
def uninterrupted(
    digits_directory: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], pathlib.Path]:
    """Checkpoint directories of exact runs without a fault, by number of workers."""

    def run(num_workers: int) -> pathlib.Path:
        def make(folder: pathlib.Path) -> None:
            arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}/run", *EXACT_RUN]
            Job(folder / "run", arguments, num_workers).run(max_attempts=1)

        return make_once(tmp_path_factory, f"uninterrupted-{num_workers}", make) / "run"

    return run


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `localvertex serve` for all tests that leave it running; each process of pytest-xdist has its own."""
    with Server(tmp_path_factory.mktemp("served") / "runs") as server:
        yield server
