"""The model behind the server, read from its folder or from gs://."""

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np

from exact_resume.files import storage
from localvertex._base.userinput import paths
from trainer.learner import libraries
from trainer.results import exported

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel

_WEIGHTS_FILE = os.path.join("variables", "variables.data-00000-of-00001")
_FEW_MULTIPLICATIONS = 2**30
"""Per image: below, waking other threads takes longer than their help saves."""


def load(directory: str) -> "LoadedModel":
    """Load an exported model, and make its first prediction, which takes longer than all others.

    A small model runs each operation in one thread of this process, if TensorFlow has not begun yet.

    Raises:
        UserError: The folder is not one that `python -m trainer.export` wrote.
    """
    metadata = exported.read(paths.check("MODEL_DIR", directory))
    libraries.load()
    import tensorflow as tf

    from trainer.results import saved_model

    # Without the file, the model is damaged, and what reads it says so.
    with contextlib.suppress(OSError, RuntimeError):
        # A weight of 4 bytes is multiplied at most once per pixel.
        num_multiplications = storage.size(storage.join(directory, _WEIGHTS_FILE)) / 4 * metadata["image_size"] ** 2
        if num_multiplications <= _FEW_MULTIPLICATIONS:
            tf.config.threading.set_intra_op_parallelism_threads(1)
    model = saved_model.load(directory)
    model.predict(np.zeros((1, model.image_size, model.image_size, 3), np.uint8))
    return model
