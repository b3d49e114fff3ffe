"""One small prepared dataset of the digits and one short training of it, shared by the tests of the trainer."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.modules import run_module
from trainer.data import dataset as datasets
from trainer.data.dataset import Dataset
from vertex_testing.cloud_storage.fixtures import server as server
from vertex_testing.shared import make_once

if TYPE_CHECKING:
    from trainer.data.examples import Examples
    from trainer.data.sampler import Sampler

SHORT_RUN = ["--epochs=2", "--global-batch-size=32", "--checkpoint-every-steps=5", "--learning-rate=0.003"]


@pytest.fixture(scope="session")
def digits(digits_directory: Path) -> Dataset:
    """The prepared digits, loaded."""
    return datasets.load(str(digits_directory))


@pytest.fixture(scope="session")
def training(digits: Dataset) -> "Examples":
    """The training split of the digits."""
    # Imports TensorFlow, which most tests of the trainer do not need.
    from trainer.data.examples import load_split

    return load_split(digits, "train")


@pytest.fixture(scope="session")
def sampler(training: "Examples") -> "Sampler":
    """The order of the training examples, 32 per step."""
    from trainer.data.sampler import Sampler

    return Sampler(num_examples=training.num_examples, global_batch_size=32, seed=0)


@pytest.fixture(scope="session")
def trained_directory(digits_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint folder of a finished short run."""

    def make(folder: Path) -> None:
        words = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}/checkpoints", *SHORT_RUN]
        done = run_module("trainer.task", *words)
        assert done.returncode == 0, done.stderr

    return make_once(tmp_path_factory, "trained", make) / "checkpoints"
