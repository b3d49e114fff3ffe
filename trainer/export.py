"""Export the best checkpoint as a SavedModel that takes image files, after a trial of it behind the server."""

import pathlib
import re
import sys

import numpy as np

from exact_resume.files import publication, storage
from localvertex._base.userinput import cli, paths
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.checkpoints import best, seen
from trainer.checkpoints.best import BestCheckpoint
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.files import outputs
from trainer.learner import libraries
from trainer.results import calibration, exported, outcome, predictions
from trainer.serve import trial
from trainer.serve.trial import TrialServer

Metadata = dict[str, str | int | float]
_OWN = re.compile(
    r"saved_model\.pb|fingerprint\.pb|variables/variables\.(?:index|data-\d+-of-\d+)"
    r"|assets\.extra/(?:model\.json|seen_images(?:_perceptual)?|tested_images)"
)
"""The paths of all files of an exported model."""
_NUM_COMPARED = 64
"""Number of test images on which the exported model is compared with the trained one."""


def export(*, checkpoint_directory: str, dataset_directory: str, output_directory: str) -> Metadata:
    """Export the checkpoint that was best on the validation split, after a trial of it behind the server.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        dataset_directory: The dataset that the run was trained on.
        output_directory: A new or empty folder, local or gs://.

    Returns:
        The metadata: run, step, model, temperature, sizes, and the largest difference of a served probability.

    Raises:
        UserError: There is no validated checkpoint, the dataset has changed, or the folder is not empty.
        TrainingError: The served model gives other probabilities than the trained one, or its server fails.
    """
    command_line.set_environment()
    paths.check("checkpoint directory", checkpoint_directory)
    outputs.check_folder("output directory", output_directory)
    if publication.is_occupied(output_directory, last="saved_model.pb", own=_OWN):
        raise UserError(f"output folder {output_directory!r} exists and is not empty; give a new one or remove it")
    data = dataset.load(paths.check("dataset", dataset_directory))
    data.check_shards("validation", "test")
    chosen = best.find(checkpoint_directory, data)
    with trial.start_server() as server:
        return _export(checkpoint_directory, chosen, data, output_directory, server)


def _export(
    checkpoint_directory: str, chosen: BestCheckpoint, data: Dataset, output_directory: str, server: TrialServer
) -> Metadata:
    libraries.load()
    import tensorflow as tf

    from trainer.checkpoints import restored
    from trainer.data import staging
    from trainer.results import saved_model

    trained = restored.model_of(chosen, data)
    temperature = calibration.fit(predictions.predict(trained.model, staging.stage(data, "validation"), "validation"))
    noted = outcome.notes(checkpoint_directory).evaluation
    metadata: Metadata = {
        **{name: noted[name] for name in ("metric", "score") if noted},
        "run_id": trained.checkpoint.run_id,
        "step": trained.checkpoint.step,
        "model": trained.config.model,
        "temperature": temperature,
    }
    indices = list(range(min(_NUM_COMPARED, data.num_examples["test"])))
    staged = staging.stage(data, "test")
    records = list(staged.records("test", indices))
    tested = np.unique(seen.numbers(record.figures.content_hash for record in staged.records("test")))
    images = np.stack([record.pixels() for record in records])
    with publication.committed_directory(output_directory, last="saved_model.pb", own=_OWN) as aside:
        saved_model.write(
            trained.model,
            str(aside),
            class_names=list(data.class_names),
            image_size=data.image_size,
            metadata=metadata,
            seen_images=seen.read(storage.join(checkpoint_directory, seen.FILE)),
        )
        storage.write_bytes(aside / exported.TESTED_FILE, tested.astype(exported.TESTED_TYPE).tobytes())
        server.load(str(aside))
        # As the server: GPUs round more than the tolerance allows.
        with tf.device("CPU:0"):
            expected = calibration.apply(np.asarray(trained.model(images, training=False)), temperature)
        difference = server.check([record.image_bytes for record in records], expected)
        num_bytes = sum(path.stat().st_size for path in pathlib.Path(aside).rglob("*") if path.is_file())
    return {
        **metadata,
        "num_classes": data.num_classes,
        "image_size": data.image_size,
        "num_bytes": num_bytes,
        "served_difference": difference,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.export", description=__doc__)
    parser.add_argument("--checkpoint-directory", required=True, metavar="DIR", help="the run's checkpoints")
    dataset_help = "the dataset that the run was trained on"
    parser.add_argument("--dataset", dest="dataset_directory", required=True, metavar="DIR", help=dataset_help)
    parser.add_argument("output_directory", help="a new folder for the SavedModel")
    for name, value in export(**vars(parser.parse_args(arguments))).items():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
