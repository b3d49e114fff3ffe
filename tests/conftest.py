"""Shared by the tests of the pipeline: the checkout's paths, prepared data and compiled files."""

import pathlib
import py_compile
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support.job import EXACT_RUN, Job
from vertex_testing.cloud_storage.fixtures import cloud_storage as cloud_storage
from vertex_testing.shared import locked, make_once, run_folder

TRAINING_IMAGE = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    """The checkout."""
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def gcloud_folder(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder for PATH with the fake gcloud."""
    gcloud = tmp_path_factory.mktemp("bin") / "gcloud"
    program = gcloud.with_name("gcloud.pyc")
    py_compile.compile(str(repository / "tests" / "support" / "gcloud.py"), str(program), doraise=True)
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


@pytest.fixture(scope="session")
def compiled_for_few_images(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image training pipeline for datasets with too few test images for its default settings."""
    return _compile_once(repository, tmp_path_factory, "compiled-for-few", "--settings", "tests/data/few_images.yaml")


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
    """Checkpoint folders of exact runs without a fault, by number of workers: programs as a user starts them."""

    def run(num_workers: int) -> pathlib.Path:
        def make(folder: pathlib.Path) -> None:
            arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}/run", *EXACT_RUN]
            job = Job(folder / "run", arguments, num_workers)
            # Of three workers only the batches are compared.
            job.forks = num_workers > 2
            job.run(max_attempts=1)

        return make_once(tmp_path_factory, f"uninterrupted-{num_workers}", make) / "run"

    return run
