"""The model behind the server, read from its folder or from gs://."""

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from localvertex_base.userinput import paths
from trainer.learner import libraries
from trainer.results import exported
from trainer.serve.batches import Probabilities

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel


class Model:
    """An exported model; its errors do not need TensorFlow's types."""

    def __init__(self, loaded: "LoadedModel") -> None:
        self._loaded = loaded
        self.class_names = loaded.class_names

    def predict(self, image_bytes: list[bytes]) -> Probabilities:
        """Return the probabilities float32 [B, K].

        Raises:
            ValueError: TensorFlow cannot decode an image.
        """
        import tensorflow as tf

        try:
            return self._loaded.predict_files(image_bytes)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(error.message) from None

    def warm_up(self) -> None:
        """Make the first prediction, which takes longer than all others."""
        buffer = io.BytesIO()
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(buffer, "PNG")
        self.predict([buffer.getvalue()])


def load(directory: str) -> Model:
    """Load an exported model.

    Raises:
        UserError: The folder is not one that `python -m trainer.export` wrote.
    """
    exported.read(paths.check("MODEL_DIR", directory))
    libraries.load()
    from trainer.results import saved_model

    return Model(saved_model.load(directory))
