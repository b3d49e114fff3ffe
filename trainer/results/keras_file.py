"""The trained model as a .keras file beside the SavedModel, for Keras itself: to look at, convert or train further."""

import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from trainer.checkpoints import variables

NAME = os.path.join("assets.extra", "model.keras")
"""TensorFlow Serving ignores assets.extra, and the Model Registry copies it with the rest of the folder."""
_MOST_CHARACTERS = 300


class LeftOut(Exception):
    """The model cannot be kept as such a file; the message is the reason in one line."""


def write(model: keras.Model, directory: str, images: npt.NDArray[np.uint8], *, tolerance: float) -> list[str]:
    """Write the file into a folder, load it again in Keras' safe mode and compare it.

    Args:
        model: Maps uint8 [B, S, S, 3] to float32 [B, K].
        directory: Local.
        images: Images uint8 [B, S, S, 3] to compare the probabilities on.
        tolerance: Largest difference of a probability; on a GPU, equal weights need not give equal bits.

    Returns:
        The modules with the model's own classes; a program imports them before it loads the file.

    Raises:
        LeftOut: Keras cannot save or load it, or something differs; there is no file.
    """
    path = os.path.join(directory, NAME)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with warnings.catch_warnings():
            # Keras 3.15 converts its variables in a way that NumPy 2 deprecates.
            warnings.simplefilter("ignore", DeprecationWarning)
            model.save(path)
            loaded = keras.models.load_model(path, compile=False, safe_mode=True)
        _compare(model, loaded, images, tolerance)
    except (OSError, MemoryError):
        # The machine is at fault, and the export fails with it.
        raise
    # A user's own layers may fail in any way.
    except Exception as error:
        if os.path.exists(path):
            os.remove(path)
        raise LeftOut(_in_one_line(error)) from error
    return _modules(path)


def _compare(live: keras.Model, loaded: keras.Model, images: npt.NDArray[np.uint8], tolerance: float) -> None:
    weights = [variables.values(model.weights) for model in (live, loaded)]
    if not all(np.array_equal(*pair) for pair in zip(*weights, strict=True)):
        raise ValueError("its weights differ once it is loaded")
    one, other = (np.asarray(model(images, training=False)) for model in (live, loaded))
    # Also false for NaN.
    if not (difference := float(np.abs(one - other).max())) <= tolerance:
        raise ValueError(f"its probabilities differ by {difference:g} once it is loaded")


def _modules(path: str) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return sorted({*_own_modules(json.loads(archive.read("config.json")))})


def _own_modules(config: Any) -> Iterator[str]:
    """Yield the modules of classes that are not Keras' own."""
    if isinstance(config, list):
        for inner in config:
            yield from _own_modules(inner)
    elif isinstance(config, dict):
        module = config.get("module")
        if (
            "registered_name" in config
            and isinstance(module, str)
            and module.split(".")[0] not in ("keras", "builtins")
        ):
            yield module
        for inner in config.values():
            yield from _own_modules(inner)


def _in_one_line(error: Exception) -> str:
    # Keras puts the configuration of the whole model before and after the reason.
    reason = str(error).rpartition("Exception encountered: ")[2].partition("Full object config")[0]
    return f"{type(error).__name__}: {' '.join(reason.split())[:_MOST_CHARACTERS]}"
