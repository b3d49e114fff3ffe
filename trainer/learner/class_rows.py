"""Fit the weights of a trained network to other classes: keep the rows of known classes, initialise the others.

Legend: K classes of the new network, L classes of the trained one. A row is the part of a variable that belongs to one
class, along the axis of length K.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from localvertex_base.userinput.errors import UserError
from trainer.checkpoints.variables import values as keras_values
from trainer.learner import keras_internals
from trainer.models import models

Arrays = Sequence[npt.NDArray[Any]]
Shapes = Sequence[tuple[int, ...]]
_MAX_NAMES = 5
"""Number of class names in a sentence."""


def fit(
    arrays: Arrays,
    old_classes: Sequence[str],
    variables: Sequence[keras.Variable],
    classes: Sequence[str],
    *,
    with_one_more_class: Callable[[], Shapes],
) -> list[npt.NDArray[Any]]:
    """Return the values for the variables of a network of the same architecture.

    Args:
        arrays: Values of the trained network's variables, in order.
        old_classes: L names.
        variables: Those of the new network, with their initial values; the states of random numbers stay as they are.
        classes: K names.
        with_one_more_class: Returns the shapes of the new network with K + 1 classes; called only if K equals L and the
            classes differ.

    Raises:
        UserError: The number of variables or a shape differs by more than the classes.
    """
    if len(arrays) != len(variables):
        raise UserError(f"the weights have {len(arrays)} variables, the network {len(variables)}: another architecture")
    shapes = [tuple(variable.shape) for variable in variables]
    others = [array.shape for array in arrays]
    if list(old_classes) == list(classes):
        others = shapes
    elif len(old_classes) == len(classes):
        others = list(with_one_more_class())
    axes = [_axis(shape, other) for shape, other in zip(shapes, others, strict=True)]
    for variable, array, axis in zip(variables, arrays, axes, strict=True):
        _check_shape(variable, array, axis, len(old_classes), len(classes))
    if list(old_classes) != list(classes) and set(axes) == {None}:
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


def check(arrays: Arrays, old_classes: Sequence[str], *, name: str, image_size: int, classes: Sequence[str]) -> None:
    """Refuse weights that do not fit the network of this name; builds it.

    Raises:
        UserError: The number of variables or a shape differs by more than the classes.
    """
    network = models.build(name, image_size=image_size, num_classes=len(classes))
    one_more = one_more_class(name, image_size, len(classes))
    fit(arrays, old_classes, network.variables, classes, with_one_more_class=one_more)


def one_more_class(name: str, image_size: int, num_classes: int) -> Callable[[], Shapes]:
    """Return what builds the network of this name with one more class and returns the shapes of its variables."""

    def shapes() -> Shapes:
        network = models.build(name, image_size=image_size, num_classes=num_classes + 1)
        return [tuple(variable.shape) for variable in network.variables]

    return shapes


def _axis(shape: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """Return the only axis in which the shapes differ, or None if there is no such axis."""
    if len(shape) != len(other):
        return None
    differing = [axis for axis, (one, two) in enumerate(zip(shape, other, strict=True)) if one != two]
    return differing[0] if len(differing) == 1 else None


def _check_shape(variable: keras.Variable, array: npt.NDArray[Any], axis: int | None, old: int, new: int) -> None:
    expected = list(variable.shape)
    if axis is not None and expected[axis] == new:
        expected[axis] = old
    if list(array.shape) != expected:
        raise UserError(
            f"variable {variable.path} has shape {tuple(variable.shape)}, but {array.shape} in the weights, which is"
            f" more than {new} classes instead of {old}; use the same network and, where it matters, image_size"
        )


def _values(
    variable: keras.Variable,
    array: npt.NDArray[Any],
    axis: int | None,
    old_classes: Sequence[str],
    classes: Sequence[str],
) -> npt.NDArray[Any]:
    if axis is None and not keras_internals.is_seed(variable):
        return array
    (values,) = keras_values([variable])
    if axis is not None:
        known = [name for name in classes if name in set(old_classes)]
        rows = np.moveaxis(values, axis, 0)
        rows[[classes.index(name) for name in known]] = np.moveaxis(array, axis, 0)[
            [old_classes.index(name) for name in known]
        ]
    return values


def _list(names: set[str]) -> str:
    shown = sorted(names)[:_MAX_NAMES]
    return ", ".join(shown) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
