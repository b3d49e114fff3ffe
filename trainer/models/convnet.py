"""A small network for small images, which the demo and the tests use."""

import keras
from keras import layers

from localvertex._base.userinput.errors import UserError
from trainer.models.weights import classifier


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Build three blocks of convolution, batch normalisation and pooling, then dropout and the classes.

    Args:
        image_size: S, at least 8 pixels.
        num_classes: K.
        weights: `none`, or a path.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The images are too small, or the weights are not available.
    """
    if image_size < 8:
        raise UserError(
            f"convnet needs images of at least 8x8 pixels, the dataset has {image_size}x{image_size}; "
            "prepare it with image_size=32"
        )
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="images")
    hidden = layers.Rescaling(1 / 127.5, offset=-1.0, name="rescaling")(images)
    for block, filters in enumerate((16, 32, 64), start=1):
        hidden = layers.Conv2D(filters, 3, padding="same", use_bias=False, name=f"conv{block}")(hidden)
        hidden = layers.BatchNormalization(momentum=0.9, name=f"norm{block}")(hidden)
        hidden = layers.ReLU(name=f"relu{block}")(hidden)
        hidden = layers.MaxPooling2D(2, name=f"pool{block}")(hidden)
    hidden = (
        layers.Flatten(name="flatten")(hidden)
        if image_size <= 64
        else layers.GlobalAveragePooling2D(name="mean")(hidden)
    )
    hidden = layers.Dropout(0.3, name="dropout")(hidden)
    return classifier(images, hidden, num_classes, "convnet", weights)
