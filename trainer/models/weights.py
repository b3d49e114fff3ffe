"""Loads weights from a file or refuses it clearly, so that no training silently starts from random weights."""

import keras

from exact_resume.files import downloads
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line
from trainer.models import weights_file


def load_weights(model: keras.Model, path: str) -> None:
    """Load a .weights.h5 or .keras file (local or gs://) of the same network into a model.

    Raises:
        UserError: The file is missing, unreadable, or of another network.
    """
    weights_file.require(path)
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
