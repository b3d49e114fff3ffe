"""The exported model of the short run."""

from pathlib import Path

import pytest

from vertex_testing.shared import make_once


@pytest.fixture(scope="module")
def exported(digits_directory: Path, trained_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the model."""

    def make(folder: Path) -> None:
        # Imports TensorFlow.
        from trainer.export import export

        made = export(
            checkpoint_directory=str(trained_directory),
            dataset_directory=str(digits_directory),
            output_directory=str(folder / "model"),
        )
        assert float(made["served_difference"]) <= 1e-4

    return make_once(tmp_path_factory, "served", make) / "model"
