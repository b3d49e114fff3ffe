"""One small prepared dataset of the digits and one short training of it, shared by the tests of the trainer."""

from pathlib import Path

import pytest

from tests.support.modules import run_module
from tests.support.shared import make_once
from trainer.data import dataset as datasets
from trainer.data.dataset import Dataset

SHORT_RUN = ["--epochs=2", "--global-batch-size=32", "--checkpoint-every-steps=5", "--learning-rate=0.003"]


@pytest.fixture(scope="session")
def digits(digits_directory: Path) -> Dataset:
    """That dataset, loaded."""
    return datasets.load(str(digits_directory))


@pytest.fixture(scope="session")
def trained_directory(digits_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint directory of a finished short run."""

    def make(folder: Path) -> None:
        words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}/checkpoints", *SHORT_RUN]
        done = run_module("trainer.task", *words)
        assert done.returncode == 0, done.stderr

    return make_once(tmp_path_factory, "trained", make) / "checkpoints"
