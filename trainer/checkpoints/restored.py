"""The trained model, restored from the best checkpoint for evaluation and export."""

from dataclasses import dataclass

import keras

from trainer.checkpoints import variables
from trainer.checkpoints.best import BestCheckpoint
from trainer.data.dataset import Dataset
from trainer.models import applications, models


@dataclass(frozen=True, kw_only=True)
class TrainedModel(BestCheckpoint):
    """A model and the checkpoint that its weights come from."""

    model: keras.Model
    """uint8 [B, S, S, 3] -> float32 [B, K]."""


def model_of(chosen: BestCheckpoint, dataset: Dataset) -> TrainedModel:
    """Build the run's model with the weights of its best checkpoint."""
    # The starting weights are overwritten, so nothing has to be downloaded.
    model = models.build(
        chosen.config.model, image_size=dataset.image_size, num_classes=dataset.num_classes, weights="none"
    )
    # The arrays are the model's variables followed by the optimizer's.
    variables.assign(model.variables, chosen.checkpoint.arrays[: len(model.variables)])
    applications.refresh(model)
    return TrainedModel(model=model, checkpoint=chosen.checkpoint, config=chosen.config)
