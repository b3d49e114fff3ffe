"""The file with weights that a user names, looked for before TensorFlow is imported."""

import os

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError


def is_file(weights: str) -> bool:
    """Return whether a value of the field `weights` is a path."""
    return weights.endswith((".h5", ".keras"))


def require(path: str) -> None:
    """Refuse a path without a file.

    Raises:
        UserError: There is no file.
    """
    if not storage.exists(path):
        raise UserError(f"weights file {path!r} not found (current folder: {os.getcwd()}); check the path")
