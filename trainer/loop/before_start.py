"""Refuse bad input before TensorFlow is imported; several machines meet first and refuse it together."""

from typing import Any

from exact_resume.checkpoints import ownership
from trainer.checkpoints import identity
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.models import weights_file


def check(config: TrainConfig, data: Dataset, directory: str, run_identity: dict[str, Any]) -> None:
    """Refuse what the training itself would refuse seconds later, after TensorFlow's notes.

    Raises:
        UserError: The batch is larger than the training split, the run too short, or the weights file is missing.
        InputError: The checkpoint folder contains another run.
    """
    config.num_steps(data.num_examples["train"])
    # A function of the user's own interprets the text.
    if weights_file.is_file(config.weights) and ":" not in config.model:
        weights_file.require(config.weights)
    if found := ownership.identity_in(directory):
        ownership.refuse_other_run(found, run_identity, directory, defaults=identity.DEFAULTS)
