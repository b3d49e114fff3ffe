"""One small prepared dataset of the digits and one short training of it, shared by the tests of the trainer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.data import dataset as datasets
from trainer.data.dataset import Dataset
from trainer.prepare import prepare

SHORT_RUN = ["--epochs=2", "--global-batch-size=32", "--checkpoint-every-steps=5", "--learning-rate=0.003"]


@pytest.fixture(scope="session")
def digits_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared dataset of 300 digits at 16x16 pixels."""
    folder = tmp_path_factory.mktemp("digits")
    prepare(
        source="digits",
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        image_size=16,
        max_examples=300,
    )
    return folder / "dataset"


@pytest.fixture(scope="session")
def digits(digits_directory: Path) -> Dataset:
    return datasets.load(str(digits_directory))


@pytest.fixture(scope="session")
def trained_directory(digits_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint directory of a finished short run."""
    folder = tmp_path_factory.mktemp("trained") / "checkpoints"
    done = run_module("trainer.task", f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", *SHORT_RUN)
    assert done.returncode == 0, done.stderr
    return folder


def module_process(module: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start `python -m module` with a clean Vertex environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIP_", "TF_CONFIG", "CLUSTER_"))}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_module(module: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m module` to its end."""
    process = module_process(module, *arguments, **environment)
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
