"""A network of the user's own, by package.module:function; what comes back is checked before anything is trained."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from trainer.models import own_source
from userinput.errors import UserError


def build(name: str, *, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Call the user's function.

    Args:
        name: package.module:function.
        image_size: S.
        num_classes: K.
        weights: as the user gave it; "none" where nothing was given, and where weights are restored afterwards.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: module or function is not there or fails, or the result is not such a model.
    """
    function = _function(name)
    try:
        model = function(image_size=image_size, num_classes=num_classes, weights=weights)
    except UserError:
        raise
    except Exception as error:
        arguments = f"image_size={image_size}, num_classes={num_classes}, weights={weights!r}"
        raise UserError(f"model={name!r}: the function, called with {arguments}, failed: {_where(error)}") from error
    if not isinstance(model, keras.Model):
        raise UserError(f"model={name!r} returned {type(model).__name__}; expected a keras.Model")
    _check_signature(name, model, image_size, num_classes)
    _check_probabilities(name, model, image_size)
    return model


def _function(name: str) -> Callable[..., Any]:
    module_name, function_name = name.split(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise UserError(own_source.not_found(name, error.name)) from error
        raise UserError(f"model={name!r}: importing {module_name} failed: {_where(error)}; install it") from error
    except Exception as error:
        raise UserError(f"model={name!r}: importing {module_name} failed: {_where(error)}") from error
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        found = sorted(
            key for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and not key.startswith("_")
        )  # fmt: skip
        raise UserError(
            f"model={name!r}: {module_name} ({module.__file__}) has no function {function_name!r}; it has:"
            f" {', '.join(found) or 'none'}"
        )
    return function


def _check_signature(name: str, model: keras.Model, image_size: int, num_classes: int) -> None:
    wanted = f"one input uint8 [B, {image_size}, {image_size}, 3] and one output float32 [B, {num_classes}]"
    try:
        tensors = [*model.inputs, *model.outputs]
    except (AttributeError, TypeError, ValueError):
        tensors = []
    if len(tensors) != 2:
        raise UserError(f"model={name!r} returned a model of {len(tensors)} inputs and outputs; expected {wanted}")
    found = [(keras.backend.standardize_dtype(tensor.dtype), tuple(tensor.shape)) for tensor in tensors]
    if found != [("uint8", (None, image_size, image_size, 3)), ("float32", (None, num_classes))]:
        shown = " -> ".join(f"{dtype} {list(shape)}" for dtype, shape in found)
        raise UserError(
            f"model={name!r} returned a model {shown}; expected {wanted} (preprocessing inside, a last layer with"
            " dtype='float32')"
        )


def _check_probabilities(name: str, model: keras.Model, image_size: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, image_size, image_size, 3), dtype=np.uint8)
    sums = np.asarray(model(images, training=False)).sum(axis=1)
    if not np.allclose(sums, 1.0, atol=1e-2):
        raise UserError(
            f"model={name!r}: the outputs of an image add up to {sums[0]:.4g}, probabilities add up to 1; end with a"
            " softmax"
        )


def _where(error: Exception) -> str:
    """The error in one line, with the line of code that it comes from."""
    reason = " ".join(str(error).split())[:300]
    found = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in found if not frame.filename.startswith("<") and frame.filename != __file__]
    place = f" ({frames[0].filename}:{frames[0].lineno})" if frames else ""
    return f"{type(error).__name__}: {reason}{place}"
