"""The labels that this project gives to models and versions, and the aliases of the version in use."""

from trainer.checkpoints import outcome
from trainer.checkpoints.identity import read_result
from vertex_gpu_training.userinput.errors import UserError

PROJECT_LABEL = ("managed-by", "vertex-gpu-training")
"""Of every model that these pipelines register; a model without it is not theirs."""
CHAMPION = "champion"
ALIASES = (CHAMPION, "default")
"""Of the version in use: `default` is the service's own, and cannot be taken from a model."""

RUN_ID, CHECKPOINT, DATASET = "run-id", "checkpoint", "dataset"
VERSION_KEYS = (RUN_ID, CHECKPOINT, DATASET)
_DIGITS = 32
"""A label's value has at most 63 characters; 32 hexadecimal digits are enough to identify content."""


def checkpoint_value(checkpoint_sha256: str) -> str:
    """Return the value of the label `checkpoint` for the SHA-256 of a checkpoint's manifest."""
    return checkpoint_sha256[:_DIGITS]


def of_version(checkpoint_directory: str) -> dict[str, str]:
    """Return the labels of the version that the best checkpoint of a finished run becomes.

    Raises:
        UserError: The run is not finished.
    """
    result = read_result(checkpoint_directory)
    if not result:
        raise UserError(f"the run in {checkpoint_directory!r} is not finished; run the pipeline again to continue it")
    return {
        RUN_ID: str(result["run_id"]),
        CHECKPOINT: checkpoint_value(outcome.best_digest(checkpoint_directory)),
        DATASET: str(result["identity"]["dataset_fingerprint"])[:_DIGITS],
    }


def at_upload(checkpoint_directory: str) -> dict[str, str]:
    """Return the labels to upload a version with; the project's label is repeated on the model by `record`."""
    return dict([PROJECT_LABEL]) | of_version(checkpoint_directory)
