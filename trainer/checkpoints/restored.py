"""The trained model, restored from the best checkpoint for evaluation and export."""

from dataclasses import dataclass, fields

import keras

from trainer import config
from trainer.checkpoints import checkpoints, variables
from trainer.checkpoints.checkpoints import Checkpoint
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.models import applications, models, user_model
from vertex_gpu_training.userinput.errors import UserError


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model and the checkpoint that its weights come from."""

    model: keras.Model
    """uint8 [B, S, S, 3] -> float32 [B, K]."""
    checkpoint: Checkpoint
    config: TrainConfig


def best_model(checkpoint_directory: str, dataset: Dataset) -> TrainedModel:
    """Build the run's model with the weights that did best on the validation split.

    Raises:
        UserError: There is no validated checkpoint, or the run was trained on another dataset.
    """
    checkpoint = checkpoints.best(checkpoint_directory)
    trained_on = checkpoint.identity.get("dataset_fingerprint")
    if trained_on != dataset.fingerprint:
        raise UserError(
            f"the run in {checkpoint_directory!r} was trained on dataset {str(trained_on)[:12]}..., and perhaps on the"
            f" test images of {dataset.directory!r} ({dataset.fingerprint[:12]}...); give the run's own dataset"
        )
    names = {field.name for field in fields(TrainConfig)}
    run_config = config.from_dict({key: value for key, value in checkpoint.identity.items() if key in names})
    _refuse_other_source(checkpoint, run_config.model, checkpoint_directory)
    # The starting weights are overwritten, so nothing has to be downloaded.
    model = models.build(
        run_config.model, image_size=dataset.image_size, num_classes=dataset.num_classes, weights="none"
    )
    # The arrays are the model's variables followed by the optimizer's.
    variables.assign(model.variables, checkpoint.arrays[: len(model.variables)])
    applications.refresh(model)
    return TrainedModel(model=model, checkpoint=checkpoint, config=run_config)


def _refuse_other_source(checkpoint: Checkpoint, name: str, directory: str) -> None:
    """Refuse other code: weights are assigned by position, so another network of equal shapes would accept them."""
    if ":" in name and checkpoint.identity.get("model_source") != user_model.digest(name):
        raise UserError(
            f"the run in {directory!r} was trained with another version of {name!r}; use the code (the container image)"
            " of that run"
        )
