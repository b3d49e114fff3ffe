"""Weights from a file, refused clearly so that no training silently starts from random ones; the end of a network."""

import keras
from keras import layers

from exact_resume.files import downloads
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.models import references


def load_weights(model: keras.Model, path: str) -> None:
    """Load a .weights.h5 or .keras file (local or gs://) of the same network into a model.

    Raises:
        UserError: The file is missing, unreadable, or of another network.
    """
    references.require(path)
    with downloads.local_copy(path) as file:
        try:
            if file.endswith(".keras"):
                # safe_mode refuses files that contain code (Lambda layers).
                model.set_weights(keras.saving.load_model(file, compile=False, safe_mode=True).get_weights())
            else:
                model.load_weights(file)
        except Exception as error:
            reason = on_one_line(error)
            raise UserError(f"weights file {path!r} does not fit this network: {reason}") from error


def classifier(
    images: keras.KerasTensor, hidden: keras.KerasTensor, num_classes: int, name: str, weights: str = "none"
) -> keras.Model:
    """Finish a network with the classes, and load weights into it.

    Args:
        images: Input uint8 [B, S, S, 3].
        hidden: Features [B, F] of the images.
        num_classes: K.
        name: Name of the model.
        weights: `none`, or a path.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The weights are not available.
    """
    hidden = layers.Dense(num_classes, name="logits")(hidden)
    # float32 even under a mixed precision policy, because probabilities of 16 bits do not add up to one.
    outputs = layers.Softmax(dtype="float32", name="probabilities")(hidden)
    model = keras.Model(images, outputs, name=name)
    if weights != "none":
        load_weights(model, weights)
    return model
