"""The checkpoint that was best on the validation split, for evaluation and export; found without TensorFlow."""

import sys
from dataclasses import dataclass, fields

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.checkpoints.checkpoints import Checkpoint
from localvertex._base.userinput.errors import UserError
from trainer import config
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.models import user_model


@dataclass(frozen=True, kw_only=True)
class BestCheckpoint:
    """A checkpoint and the configuration of its run."""

    checkpoint: Checkpoint
    config: TrainConfig


def find(checkpoint_directory: str, dataset: Dataset) -> BestCheckpoint:
    """Return the checkpoint of a run that did best on the validation split.

    Raises:
        InputError: There is no validated checkpoint.
        UserError: The run was trained on another dataset.
    """
    checkpoint = checkpoints.best(checkpoint_directory)
    if warning := lost_best_of(checkpoint_directory):
        print(f"warning: {warning}", file=sys.stderr)
    trained_on = checkpoint.identity.get("dataset_fingerprint")
    if trained_on != dataset.fingerprint:
        raise UserError(
            f"the run in {checkpoint_directory!r} was trained on dataset {str(trained_on)[:12]}..., and perhaps on the"
            f" test images of {dataset.directory!r} ({dataset.fingerprint[:12]}...); give the run's own dataset"
        )
    names = {field.name for field in fields(TrainConfig)}
    run_config = config.from_dict({key: value for key, value in checkpoint.identity.items() if key in names})
    name = run_config.model
    # Weights are assigned by position, so another network of equal shapes would accept them.
    if ":" in name and checkpoint.identity.get("model_source") != user_model.digest(name):
        raise UserError(
            f"the run in {checkpoint_directory!r} was trained with another version of {name!r}; use the code (the"
            " container image) of that run"
        )
    return BestCheckpoint(checkpoint=checkpoint, config=run_config)


def lost_best_of(checkpoint_directory: str) -> str:
    """Return a warning if the run's result names a checkpoint that is not the best one; otherwise empty."""
    result = result_file.read_result(checkpoint_directory) or {}
    if (lost := result.get("lost_best_step")) is None:
        return ""
    return (
        f"step {result['best_step']} is only the best of the remaining checkpoints;"
        f" {result_file.lost_best_message(lost)}"
    )
