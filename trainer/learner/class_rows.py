"""Fit the weights of a trained network to other classes: keep the rows of known classes, initialise the others.

Legend: K classes of the new network, L classes of the trained one. A row is the part of a variable that belongs to one
class, along the axis that is longer in a network with one more class.
"""

import operator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from exact_resume.text import some
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints.variables import values as keras_values
from trainer.learner import keras_internals
from trainer.models import models

Arrays = Sequence[npt.NDArray[Any]]
_MAX_NAMES = 5
"""Number of class names in a sentence."""


def fit(
    arrays: Arrays,
    old_classes: Sequence[str],
    variables: Sequence[keras.Variable],
    classes: Sequence[str],
    *,
    name: str,
    image_size: int,
) -> list[npt.NDArray[Any]]:
    """Return the values for the variables of a network of the same architecture.

    Args:
        arrays: Values of the trained network's variables, in order.
        old_classes: L names.
        variables: Variables of the new network, with their initial values; states of random numbers do not change.
        classes: K names.
        name: Name of the network, which is built again if the classes differ.
        image_size: Height and width of its images, in pixels.

    Raises:
        UserError: The number of variables or a shape differs by more than the classes.
    """
    if len(arrays) != len(variables):
        raise UserError(f"the weights have {len(arrays)} variables, the network {len(variables)}: another architecture")
    larger = variables
    if list(old_classes) != list(classes):
        larger = models.build(name, image_size=image_size, num_classes=len(classes) + 1).variables
    if larger is not variables and [each.shape for each in variables] == [each.shape for each in larger]:
        raise UserError("no variable of the network has a row per class, so other classes cannot be matched by name")
    kept = [name for name in classes if name in old_classes]
    rows, old_rows = [classes.index(name) for name in kept], [old_classes.index(name) for name in kept]
    values = []
    for variable, other, array in zip(variables, larger, arrays, strict=True):
        sizes = zip(variable.shape, other.shape, strict=True)
        expected = tuple(size if size == more else len(old_classes) for size, more in sizes)
        if array.shape != expected:
            raise UserError(
                f"variable {variable.path} has shape {tuple(variable.shape)}, but {array.shape} in the weights, which"
                f" is more than {len(classes)} classes instead of {len(old_classes)}; use the same network and, where"
                " it matters, image_size"
            )
        if variable.shape != other.shape:
            axis = [*map(operator.eq, variable.shape, other.shape)].index(False)
            (value,) = keras_values([variable])
            np.moveaxis(value, axis, 0)[rows] = np.moveaxis(array, axis, 0)[old_rows]
        else:
            value = keras_values([variable])[0] if keras_internals.is_seed(variable) else array
        values.append(value)
    return values


def describe(old_classes: Sequence[str], classes: Sequence[str]) -> str:
    """Return which rows are taken, which are new, and which are not taken."""
    lists = {"new": set(classes) - set(old_classes), "not taken": set(old_classes) - set(classes)}
    kept = f"{len(classes) - len(lists['new'])} of {len(classes)} classes keep their rows"
    return "; ".join(
        [kept, *(f"{which}: {some(sorted(names), _MAX_NAMES)}" for which, names in lists.items() if names)]
    )
