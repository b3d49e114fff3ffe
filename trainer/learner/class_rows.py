"""Fit the weights of a trained network to other classes: keep the rows of known classes, initialise the others.

Legend: K classes of the new network, L classes of the trained one. A row is the part of a variable that belongs to one
class, along the axis that is longer in a network with one more class.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from localvertex_base.userinput.errors import UserError
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
        variables: Those of the new network, with their initial values; the states of random numbers stay as they are.
        classes: K names.
        name: Name of the network, of which another one is built if the classes differ.
        image_size: Height and width of its images, in pixels.

    Raises:
        UserError: The number of variables or a shape differs by more than the classes.
    """
    if len(arrays) != len(variables):
        raise UserError(f"the weights have {len(arrays)} variables, the network {len(variables)}: another architecture")
    larger = variables
    if list(old_classes) != list(classes):
        larger = models.build(name, image_size=image_size, num_classes=len(classes) + 1).variables
    axes = [_axis(variable, other) for variable, other in zip(variables, larger, strict=True)]
    if larger is not variables and set(axes) == {None}:
        raise UserError("no variable of the network has a row per class, so other classes cannot be matched by name")
    return [
        _values(variable, array, axis, old_classes, classes)
        for variable, array, axis in zip(variables, arrays, axes, strict=True)
    ]


def describe(old_classes: Sequence[str], classes: Sequence[str]) -> str:
    """Return which rows are taken, which are new, and which are not taken."""
    new, left = [set(one) - set(other) for one, other in ((classes, old_classes), (old_classes, classes))]
    kept = f"{len(classes) - len(new)} of {len(classes)} classes keep their rows"
    return "; ".join([kept, *([f"new: {_list(new)}"] if new else []), *([f"not taken: {_list(left)}"] if left else [])])


def _axis(variable: keras.Variable, larger: keras.Variable) -> int | None:
    """Return the first axis in which the shapes differ, or None if they are equal."""
    sizes = enumerate(zip(variable.shape, larger.shape, strict=True))
    return next((axis for axis, (size, other) in sizes if size != other), None)


def _values(
    variable: keras.Variable,
    array: npt.NDArray[Any],
    axis: int | None,
    old_classes: Sequence[str],
    classes: Sequence[str],
) -> npt.NDArray[Any]:
    expected = list(variable.shape)
    if axis is not None:
        expected[axis] = len(old_classes)
    if list(array.shape) != expected:
        raise UserError(
            f"variable {variable.path} has shape {tuple(variable.shape)}, but {array.shape} in the weights, which is"
            f" more than {len(classes)} classes instead of {len(old_classes)}; use the same network and, where it"
            " matters, image_size"
        )
    if axis is None and not keras_internals.is_seed(variable):
        return array
    (values,) = keras_values([variable])
    if axis is not None:
        rows, old_rows = np.moveaxis(values, axis, 0), np.moveaxis(array, axis, 0)
        for name in set(classes).intersection(old_classes):
            rows[classes.index(name)] = old_rows[old_classes.index(name)]
    return values


def _list(names: set[str]) -> str:
    shown = sorted(names)[:_MAX_NAMES]
    return ", ".join(shown) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
