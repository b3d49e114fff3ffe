"""Weights from a file, or a clear refusal: nobody shall train from random weights without having asked for it."""

from __future__ import annotations

import os

import keras

from trainer.files import storage
from userinput.errors import UserError


def load(model: keras.Model, path: str) -> None:
    """Fill a model from a .weights.h5 or .keras file (local or gs://) of the same network.

    Raises:
        UserError: the file is missing, unreadable, or of another network.
    """
    if not storage.exists(path):
        raise UserError(f"weights file {path!r} not found; relative paths start at {os.getcwd()}")
    try:
        if path.endswith(".keras"):
            # safe_mode refuses code inside the file (Lambda layers).
            model.set_weights(keras.saving.load_model(path, compile=False, safe_mode=True).get_weights())
        else:
            model.load_weights(path)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"weights file {path!r} does not fit this network: {reason}") from error
