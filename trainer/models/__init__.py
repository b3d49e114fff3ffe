"""The networks that can be trained, by name. Imports TensorFlow only when one is built.

Legend: B batch, S image size (height and width), K classes. Every network takes images uint8 [B, S, S, 3] and gives
class probabilities float32 [B, K]; its own preprocessing is inside.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING

from trainer.errors import UserError

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """One line of the registry."""

    builder: str
    """`module:function`; the function is called with image_size, num_classes and weights (never "default")."""
    description: str
    """One line for a person."""
    has_imagenet_weights: bool = False
    """Whether weights=imagenet can be asked for, and is the default."""


REGISTRY: dict[str, ModelEntry] = {
    "convnet": ModelEntry(
        builder="trainer.models.convnet:build",
        description="small network with batch normalisation and dropout, for small images and for trying things out",
    ),
    "mnist-cnn": ModelEntry(
        builder="trainer.models.mnist_cnn:build",
        description="five convolutions of 128 channels on grey images, as in a 2018 article on several GPUs",
    ),
    "resnet50": ModelEntry(
        builder="trainer.models.resnet50:build",
        description="ResNet50 with a new head of 1016 units; the base stays frozen (weights=none trains all)",
        has_imagenet_weights=True,
    ),
}
NAMES = tuple(REGISTRY)


def resolve_weights(name: str, weights: str) -> str:
    """What weights="default" means for a model: imagenet where it has them, else none."""
    if weights != "default":
        return weights
    return "imagenet" if REGISTRY[name].has_imagenet_weights else "none"


def check_weights(name: str, weights: str) -> None:
    """Refuse weights that the model cannot have, before anything heavy is imported.

    Raises:
        UserError: imagenet is asked of a model without such weights, or a path has another ending than Keras writes.
    """
    chosen = resolve_weights(name, weights)
    if chosen == "imagenet" and not REGISTRY[name].has_imagenet_weights:
        raise UserError(f"weights='imagenet' do not exist for model {name!r}; give none or a path, or take resnet50")
    if chosen not in ("imagenet", "none") and not chosen.endswith((".h5", ".keras")):
        raise UserError(
            f"weights={weights!r} is none of: default, imagenet, none, a path ending in .weights.h5 or .keras"
        )


def build(name: str, *, image_size: int, num_classes: int, weights: str = "none") -> keras.Model:
    """A network of the registry.

    Args:
        name: key of `REGISTRY`.
        image_size: S, height and width of the images in pixels.
        num_classes: K.
        weights: default, imagenet, none, or a path to a .weights.h5 or .keras file.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: the weights cannot be had, or the image size does not fit the network.
    """
    module, function = REGISTRY[name].builder.split(":")
    builder = getattr(importlib.import_module(module), function)
    model: keras.Model = builder(image_size=image_size, num_classes=num_classes, weights=resolve_weights(name, weights))
    return model
