"""A user's own network, package.module:function: its name, its source digest, and what the function returns.

Checking a name and computing a digest imports neither Keras nor the user's module.
"""

import hashlib
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line

if TYPE_CHECKING:
    import keras

_CUSTOM = "trainer.models.custom"
"""The folder for networks that are added to this project."""


def check_name(name: str) -> None:
    """Refuse a name that is not package.module:function.

    Raises:
        UserError: The name has another form.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", name):
        raise UserError(f"model={name!r} is not of the form package.module:function, e.g. {_CUSTOM}.separable:build")


def digest(name: str) -> str:
    """Return 64 hexadecimal digits: SHA-256 of the Python files of the module's top-level package.

    For a module in `trainer.models.custom` it is that folder. All files count, because the module may import its
    neighbours: changed code must train a new run, not continue one with another network.

    Raises:
        UserError: The package does not exist.
    """
    result = hashlib.sha256()
    for relative, path in sorted(_sources(name)):
        result.update(f"{relative}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return result.hexdigest()


def build(name: str, *, image_size: int, num_classes: int, weights: str) -> "keras.Model":
    """Call the user's function and check the model that it returns.

    Args:
        name: The function, as package.module:function.
        image_size: S, in pixels.
        num_classes: K.
        weights: The user's value; `none` where nothing was given, and where weights are restored afterwards.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The module or the function does not exist or fails, or the result is not such a model.
    """
    import keras

    function = _function(name)
    try:
        model = function(image_size=image_size, num_classes=num_classes, weights=weights)
    except UserError:
        raise
    except Exception as error:
        arguments = f"image_size={image_size}, num_classes={num_classes}, weights={weights!r}"
        raise UserError(
            f"model={name!r}: the function, called with {arguments}, failed: {_with_origin(error)}"
        ) from error
    if not isinstance(model, keras.Model):
        raise UserError(f"model={name!r} returned {type(model).__name__}; expected a keras.Model")
    model = _with_input(name, model, image_size)
    _check_signature(name, model, image_size, num_classes)
    _check_probabilities(name, model, image_size)
    return model


def _sources(name: str) -> list[tuple[str, pathlib.Path]]:
    """Return (path relative to the package, path) of the package's Python files."""
    module = name.split(":")[0]
    if module.startswith(f"{_CUSTOM}."):
        return _files(pathlib.Path(__file__).parent / "custom")
    top = module.split(".")[0]
    # Finding a top-level name imports nothing.
    spec = importlib.util.find_spec(top)
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise _not_found(name, top)
    if not spec.submodule_search_locations:
        path = pathlib.Path(spec.origin or "")
        return [(path.name, path)]
    return [file for location in spec.submodule_search_locations for file in _files(pathlib.Path(location))]


def _files(folder: pathlib.Path) -> list[tuple[str, pathlib.Path]]:
    return [(path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")]


def _not_found(name: str, module: str) -> UserError:
    searched = ", ".join(folder or "." for folder in sys.path[:3])
    return UserError(
        f"model={name!r}: module {module!r} not found in {searched} or among the installed packages; put it into"
        " trainer/models/custom/, install its package, or add its folder to PYTHONPATH (docs/models.md)"
    )


def _function(name: str) -> Callable[..., Any]:
    module_name, function_name = name.split(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else ""
        if missing and f"{module_name}.".startswith(f"{missing}."):
            raise _not_found(name, missing) from error
        hint = "; install it" if missing else ""
        raise UserError(f"model={name!r}: importing {module_name} failed: {_with_origin(error)}{hint}") from error
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", "") == module_name}
        found = sorted(key for key, value in own.items() if callable(value) and not key.startswith("_"))
        raise UserError(
            f"model={name!r}: {module_name} ({module.__file__}) has no function {function_name!r}; it has:"
            f" {', '.join(found) or 'none'}"
        )
    return function


def _with_input(name: str, model: "keras.Model", image_size: int) -> "keras.Model":
    """Give a subclassed or sequential model the input that it leaves open; return any other as it is."""
    import keras

    # A subclassed model has no such attribute, or None.
    if getattr(model, "inputs", None):
        return model
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    try:
        return keras.Model(images, model(images))
    except Exception as error:
        raise UserError(
            f"model={name!r}: the model, called with uint8 [B, {image_size}, {image_size}, 3], failed:"
            f" {_with_origin(error)}; make all layers in __init__, and use operations of keras.ops in call"
        ) from error


def _check_signature(name: str, model: "keras.Model", image_size: int, num_classes: int) -> None:
    import keras

    expected = f"one input uint8 [B, {image_size}, {image_size}, 3] and one output float32 [B, {num_classes}]"
    try:
        tensors = [*model.inputs, *model.outputs]
    except (AttributeError, TypeError, ValueError):
        tensors = []
    if len(tensors) != 2:
        raise UserError(
            f"model={name!r} returned a model with {len(tensors)} inputs and outputs in total; expected {expected}"
        )
    found = [(keras.backend.standardize_dtype(tensor.dtype), tuple(tensor.shape)) for tensor in tensors]
    if found != [("uint8", (None, image_size, image_size, 3)), ("float32", (None, num_classes))]:
        shown = " -> ".join(f"{dtype} {list(shape)}" for dtype, shape in found)
        raise UserError(
            f"model={name!r} returned a model {shown}; expected {expected} (preprocessing inside the model, last layer"
            " with dtype='float32')"
        )


def _check_probabilities(name: str, model: "keras.Model", image_size: int) -> None:
    import numpy as np

    images = np.random.default_rng(0).integers(0, 256, (2, image_size, image_size, 3), dtype=np.uint8)
    sums = np.asarray(model(images, training=False)).sum(axis=1)
    if not np.allclose(sums, 1.0, atol=1e-2):
        raise UserError(
            f"model={name!r}: the outputs for an image add up to {sums[0]:.4g}, expected probabilities that add up to"
            " 1; end with a softmax"
        )


def _with_origin(error: Exception) -> str:
    """Return the error in one line, with the line of code that raised it."""
    # Keras prints a part in bold, and puts its own frame before the user's.
    reason = on_one_line(re.sub(r"\x1b\[\d*m", "", str(error)))
    own = (__file__, "keras/src/utils/traceback_utils.py")
    found = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in found if not frame.filename.startswith("<") and not frame.filename.endswith(own)]
    origin = f" ({frames[0].filename}:{frames[0].lineno})" if frames else ""
    return f"{type(error).__name__}: {reason}{origin}"
