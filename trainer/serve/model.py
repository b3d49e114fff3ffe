"""The model behind the server, read from its folder or from gs://."""

from typing import TYPE_CHECKING

import numpy as np

from localvertex._base.userinput import paths
from trainer.learner import libraries
from trainer.results import exported

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel


def load(directory: str) -> "LoadedModel":
    """Load an exported model, and make its first prediction, which takes longer than all others.

    Raises:
        UserError: The folder is not one that `python -m trainer.export` wrote.
    """
    exported.read(paths.check("MODEL_DIR", directory))
    libraries.load()
    from trainer.results import saved_model

    model = saved_model.load(directory)
    model.predict(np.zeros((1, model.image_size, model.image_size, 3), np.uint8))
    return model
