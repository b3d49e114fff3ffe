"""Keras variables to NumPy arrays and back."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from localvertex._base.userinput.errors import UserError


def values(variables: Sequence[keras.Variable]) -> list[npt.NDArray[Any]]:
    """Return copies of the values, in order."""
    # TensorFlow's numpy() copies; for a scalar its result is not an array.
    return [np.asarray(tf.convert_to_tensor(variable.value).numpy()) for variable in variables]


def assign(variables: Sequence[keras.Variable], arrays: Sequence[npt.NDArray[Any]]) -> None:
    """Assign one array to each variable.

    Raises:
        UserError: The number of variables or a shape differs.
    """
    if len(variables) != len(arrays):
        raise UserError(
            f"the checkpoint has {len(arrays)} variables, the model {len(variables)}: different code wrote it; use the"
            " code (the container image) of that run"
        )
    for variable, array in zip(variables, arrays, strict=True):
        if tuple(variable.shape) != array.shape:
            raise UserError(
                f"variable {variable.path} has shape {tuple(variable.shape)}, but {array.shape} in the checkpoint; use"
                " the code (the container image) of that run"
            )
        variable.assign(array)
