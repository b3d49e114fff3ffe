"""Best checkpoint -> SavedModel that takes image files; reloaded and compared with the live model before it appears."""

from __future__ import annotations

import pathlib
import sys

from trainer import command_line
from trainer.command_line import reported as reported
from trainer.data import dataset
from trainer.errors import TrainingError
from trainer.files import storage
from userinput import cli
from userinput.errors import UserError

_NUM_COMPARED = 64
"""Test images that the exported model is compared on."""
_TOLERANCE = 1e-4
"""Largest difference of a probability: the exported graph is optimised differently, the mathematics are the same."""


def export(*, checkpoint_directory: str, dataset_directory: str, output_directory: str) -> dict[str, str | int | float]:
    """Export the checkpoint that did best on the validation split.

    Args:
        checkpoint_directory: of the run.
        dataset_directory: the dataset that the run was trained on.
        output_directory: a new or empty folder, local or gs://.

    Returns:
        Metadata: run_id, step, model, num_classes, image_size, num_bytes, largest_difference.

    Raises:
        UserError: no validated checkpoint, another dataset, or the folder is not empty.
        TrainingError: the exported model does not answer as the live one does.
    """
    command_line.set_environment()
    import numpy as np

    from trainer.checkpoints import restored
    from trainer.results import saved_model

    if storage.is_occupied(output_directory, last="saved_model.pb"):
        raise UserError(f"output directory {output_directory!r} exists and is not empty; give a new one or remove it")
    data = dataset.load(dataset_directory)
    trained = restored.best_model(checkpoint_directory, data)
    metadata: dict[str, str | int | float] = {
        "run_id": trained.checkpoint.run_id,
        "step": trained.checkpoint.step,
        "model": trained.config.model,
    }
    records = list(data.records("test", list(range(min(_NUM_COMPARED, data.num_examples["test"])))))
    images = np.stack([record.pixels() for record in records])
    with storage.committed_directory(output_directory, last="saved_model.pb") as aside:
        saved_model.write(
            trained.model, str(aside), class_names=list(data.class_names), image_size=data.image_size, metadata=metadata
        )
        expected = np.asarray(trained.model(images, training=False))
        loaded = saved_model.load(str(aside))
        answers = (loaded.predict_images(images), loaded.predict_files([record.image_bytes for record in records]))
        difference = max(float(np.abs(answer - expected).max()) for answer in answers)
        # Also false for a NaN.
        if not difference <= _TOLERANCE:
            raise TrainingError(
                f"the exported model differs from the live one by {difference:g} on {len(images)} images"
            )
        num_bytes = sum(path.stat().st_size for path in pathlib.Path(aside).rglob("*") if path.is_file())
    return {
        **metadata,
        "num_classes": data.num_classes,
        "image_size": data.image_size,
        "num_bytes": num_bytes,
        "largest_difference": difference,
    }


def main(arguments: list[str] | None = None) -> int:
    """Command line of export."""
    parser = cli.Parser("python -m trainer.export", description=__doc__)
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the dataset of the run")
    parser.add_argument("output_directory", help="a new folder for the SavedModel")
    options = parser.parse_args(arguments)
    metadata = export(
        checkpoint_directory=options.checkpoint_directory, dataset_directory=options.dataset,
        output_directory=options.output_directory,
    )  # fmt: skip
    for name, value in metadata.items():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
