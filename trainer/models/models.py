"""The networks by name: which there are, what they accept, and building one. Imports Keras only to build.

Legend: B batch, S image size (height and width), K classes. Every network takes images uint8 [B, S, S, 3] and returns
class probabilities float32 [B, K]; its preprocessing is inside.
"""

import difflib
from typing import TYPE_CHECKING

from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.models import references, table, user_model

if TYPE_CHECKING:
    import keras

_DESCRIPTIONS = {
    "convnet": "small network with batch normalisation and dropout, for small images and quick trials",
    "mnist-cnn": "five convolutions of 128 channels on grey images, as in a 2018 article on several GPUs",
    "small-resnet": "four residual blocks, for photographs from 32 pixels, trained from random weights",
    **{name: application.description for name, application in table.APPLICATIONS.items()},
}
"""The networks that have a name, each with a one-line description."""
TRAINABLE = ("default", "head", "all")
"""Trained part of a network: head leaves the pretrained base frozen."""


def listing() -> str:
    """Return one line per network that has a name, and one for the user's own."""
    lines = [f"{name:<18} {text}" for name, text in _DESCRIPTIONS.items()]
    return "\n".join([*lines, f"{'module:function':<18} your own, see docs/models.md"])


def check(name: str, weights: str, trainable: str) -> None:
    """Refuse impossible combinations before anything heavy is imported.

    Raises:
        UserError: The model does not exist, has no such weights, or has no base that could stay frozen.
    """
    if ":" in name:
        user_model.check_name(name)
    elif name not in _DESCRIPTIONS:
        near = difflib.get_close_matches(name.lower(), _DESCRIPTIONS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UserError(
            f"model={name!r} is not known; {hint}`python -m trainer.task --list-models` lists the models, and"
            " package.module:function names your own"
        )
    _check_weights(name, weights)
    if trainable != "head":
        return
    if name not in table.APPLICATIONS:
        reason = "freeze layers in the function itself" if ":" in name else "it has no pretrained base"
        raise UserError(
            f"trainable='head' and the recipe's fine_tuning do not work with model {name!r}: {reason}; use"
            " trainable=all without fine_tuning"
        )
    if _resolve_weights(name, weights) == "none":
        raise UserError(
            "trainable='head' and the recipe's fine_tuning would freeze random weights with weights='none'; set"
            " weights, or use trainable=all without fine_tuning"
        )


def _check_weights(name: str, weights: str) -> None:
    if not weights:
        raise UserError("weights is empty; use default, imagenet, none, or a path to a .weights.h5 or .keras file")
    if references.is_reference(weights):
        references.check(weights)
        return
    # The user's own function interprets the text.
    if ":" in name:
        return
    if weights == "imagenet" and name not in table.APPLICATIONS:
        raise UserError(f"model {name!r} has no weights='imagenet'; use none, a path, or resnet50")
    if weights not in ("default", "imagenet", "none") and not references.is_file(weights):
        raise UserError(
            f"weights={weights!r} is not valid; use default, imagenet, none, run:..., model:NAME@ALIAS, "
            "or a path ending in .weights.h5 or .keras"
        )
    if references.is_file(weights):
        paths.check("weights", weights)


def _resolve_weights(name: str, weights: str) -> str:
    """Return what weights="default" means for a model: imagenet where it has them, otherwise none."""
    if weights != "default":
        return weights
    return "imagenet" if name in table.APPLICATIONS else "none"


def build(
    name: str, *, image_size: int, num_classes: int, weights: str = "none", trainable: str = "default"
) -> "keras.Model":
    """Build a network by its name.

    Args:
        name: A name that `listing` describes, or package.module:function.
        image_size: S, height and width of the images in pixels.
        num_classes: K.
        weights: One of default, imagenet and none, or a path to a .weights.h5 or .keras file. Those that a reference
            names are assigned later.
        trainable: One of default, head and all.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The weights are not available, the images do not fit the network, or the user's own function
            returns something else.
    """
    from trainer.models import applications, small_networks

    resolved = _resolve_weights(name, weights)
    initial = "none" if references.is_reference(resolved) else resolved
    if ":" in name:
        return user_model.build(name, image_size=image_size, num_classes=num_classes, weights=initial)
    if name in table.APPLICATIONS:
        return applications.build(
            table.APPLICATIONS[name],
            image_size=image_size,
            num_classes=num_classes,
            weights=initial,
            is_pretrained=resolved != "none",
            # By default only the head is trained where the base starts from pretrained weights.
            is_frozen=resolved != "none" and trainable != "all",
        )
    networks = {
        "convnet": small_networks.convnet,
        "mnist-cnn": small_networks.mnist_cnn,
        "small-resnet": small_networks.small_resnet,
    }
    return networks[name](image_size=image_size, num_classes=num_classes, weights=initial)
