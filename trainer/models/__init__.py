"""The networks that can be trained, by name. Imports TensorFlow only when one is built.

Legend: B batch, S image size (height and width), K classes. Every network takes images uint8 [B, S, S, 3] and gives
class probabilities float32 [B, K]; its own preprocessing is inside.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from trainer.models import own_source, table
from userinput.errors import UserError

if TYPE_CHECKING:
    import keras

DESCRIPTIONS = {
    "convnet": "small network with batch normalisation and dropout, for small images and for trying things out",
    "mnist-cnn": "five convolutions of 128 channels on grey images, as in a 2018 article on several GPUs",
    **{name: application.description for name, application in table.APPLICATIONS.items()},
}
"""The networks that have a name, each with one line for a person."""
NAMES = tuple(DESCRIPTIONS)
TRAINABLE = ("default", "head", "all")
"""What of a network is trained: head leaves the pretrained base frozen."""


def listing() -> str:
    """A line for each network that has a name, and one for those of the user."""
    lines = [f"{name:<18} {text}" for name, text in DESCRIPTIONS.items()]
    return "\n".join([*lines, f"{'module:function':<18} your own, see docs/models.md"])


def check(name: str, weights: str, trainable: str) -> None:
    """Refuse what cannot be, before anything heavy is imported.

    Raises:
        UserError: there is no such model, it has no such weights, or it has no base that could stay frozen.
    """
    if ":" in name:
        own_source.check_name(name)
    elif name not in NAMES:
        near = difflib.get_close_matches(name.lower(), NAMES, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UserError(
            f"model={name!r} is not known; {hint}`python -m trainer.task --list-models` lists them, and"
            " package.module:function is one of your own"
        )
    _check_weights(name, weights)
    if trainable != "head":
        return
    if name not in table.APPLICATIONS:
        kind = "freeze layers in the function itself" if ":" in name else "it has no pretrained base"
        raise UserError(f"trainable='head' does not go with model {name!r}: {kind}; give all")
    if resolve_weights(name, weights) == "none":
        raise UserError(
            "trainable='head' with weights='none' would keep a base of random numbers; give weights, or trainable=all"
        )


def _check_weights(name: str, weights: str) -> None:
    if not weights:
        raise UserError("weights is empty; give default, imagenet, none, or a path to a .weights.h5 or .keras file")
    # What a function of the user makes of the text is its own affair.
    if ":" in name:
        return
    if weights == "imagenet" and name not in table.APPLICATIONS:
        raise UserError(f"weights='imagenet' do not exist for model {name!r}; give none or a path, or take resnet50")
    if weights not in ("default", "imagenet", "none") and not weights.endswith((".h5", ".keras")):
        raise UserError(
            f"weights={weights!r} is none of: default, imagenet, none, a path ending in .weights.h5 or .keras"
        )


def resolve_weights(name: str, weights: str) -> str:
    """What weights="default" means for a model: imagenet where it has them, else none."""
    if weights != "default":
        return weights
    return "imagenet" if name in table.APPLICATIONS else "none"


def keeps_base_frozen(name: str, weights: str, trainable: str) -> bool:
    """Whether only the head is trained: by default where the base starts from pretrained weights."""
    pretrained = name in table.APPLICATIONS and resolve_weights(name, weights) != "none"
    return pretrained and trainable != "all"


def build(
    name: str, *, image_size: int, num_classes: int, weights: str = "none", trainable: str = "default"
) -> keras.Model:
    """A network by its name.

    Args:
        name: one of `NAMES`, or package.module:function.
        image_size: S, height and width of the images in pixels.
        num_classes: K.
        weights: default, imagenet, none, or a path to a .weights.h5 or .keras file.
        trainable: default, head or all.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: the weights cannot be had, the image size does not fit the network, or the user's own function
            gives something else.
    """
    from trainer.models import applications, convnet, mnist_cnn, own

    chosen = resolve_weights(name, weights)
    if ":" in name:
        return own.build(name, image_size=image_size, num_classes=num_classes, weights=chosen)
    if name in table.APPLICATIONS:
        return applications.build(
            table.APPLICATIONS[name], image_size=image_size, num_classes=num_classes, weights=chosen,
            is_frozen=keeps_base_frozen(name, weights, trainable),
        )  # fmt: skip
    module = {"convnet": convnet, "mnist-cnn": mnist_cnn}[name]
    return module.build(image_size=image_size, num_classes=num_classes, weights=chosen)
