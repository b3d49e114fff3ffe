"""Keras variables to numpy arrays and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from userinput.errors import UserError


def values(variables: Sequence[keras.Variable]) -> list[npt.NDArray[Any]]:
    """Copies of the values, in order."""
    # TensorFlow's numpy() copies; what it gives for a scalar is no array.
    return [np.asarray(tf.convert_to_tensor(variable.value).numpy()) for variable in variables]


def assign(variables: Sequence[keras.Variable], arrays: Sequence[npt.NDArray[Any]]) -> None:
    """Give the variables the values of the arrays, one to one.

    Raises:
        UserError: the number of variables or a shape differs.
    """
    if len(variables) != len(arrays):
        raise UserError(
            f"the checkpoint has {len(arrays)} variables, the model {len(variables)}: they are of different code"
        )
    for variable, array in zip(variables, arrays, strict=True):
        if tuple(variable.shape) != array.shape:
            raise UserError(f"variable {variable.path} is {tuple(variable.shape)}, in the checkpoint {array.shape}")
        variable.assign(array)
