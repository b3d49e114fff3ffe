"""Small networks to train from random weights; the demo and the tests use `convnet`."""

import keras
from keras import layers, ops

from localvertex._base.userinput.errors import UserError
from trainer.models.weights import classifier


def convnet(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
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


@keras.saving.register_keras_serializable(package="trainer")
class Grey(layers.Layer):  # type: ignore[misc]
    """Converts colour to one grey channel in 0 to 1, as MNIST is stored."""

    def call(self, images: keras.KerasTensor) -> keras.KerasTensor:
        """Convert images uint8 [B, S, S, 3] to float32 [B, S, S, 1]."""
        return ops.mean(ops.cast(images, self.compute_dtype), axis=-1, keepdims=True) / 255.0


def mnist_cnn(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Build conv, conv, pool, conv, conv, conv, flatten, dense: all with 128 channels and without padding.

    Args:
        image_size: S, at least 18 pixels (28 in the article).
        num_classes: K.
        weights: `none`, or a path.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The images are too small, or the weights are not available.
    """
    if image_size < 18:
        raise UserError(
            f"mnist-cnn needs images of at least 18x18 pixels, the dataset has {image_size}x{image_size};"
            " prepare it with image_size=28"
        )
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="images")
    hidden = Grey(name="grey")(images)
    for layer in (1, 2):
        hidden = layers.Conv2D(128, 3, activation="relu", name=f"conv{layer}")(hidden)
    hidden = layers.MaxPooling2D(2, name="pool")(hidden)
    for layer in (3, 4, 5):
        hidden = layers.Conv2D(128, 3, activation="relu", name=f"conv{layer}")(hidden)
    hidden = layers.Flatten(name="flatten")(hidden)
    hidden = layers.Dense(128, activation="relu", name="dense")(hidden)
    return classifier(images, hidden, num_classes, "mnist_cnn", weights)


def small_resnet(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Build a convolution, four residual blocks (arXiv:1512.03385), the mean over the image, and the classes.

    The stride of the first convolution grows with the image, so that the blocks work on at most 48 pixels.

    Args:
        image_size: S.
        num_classes: K.
        weights: `none`, or a path.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The weights are not available.
    """
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="images")
    hidden = _convolution(layers.Rescaling(1 / 255)(images), 16, 7, 1 + image_size // 48)
    for filters, stride in ((16, 1), (32, 2), (64, 2), (128, 2)):
        residual = _convolution(_convolution(hidden, filters, 3, stride), filters, 3, 1)
        hidden = layers.Add()([_convolution(hidden, filters, 1, stride), residual])
    hidden = layers.GlobalAveragePooling2D()(layers.ReLU()(hidden))
    return classifier(images, layers.Dropout(0.2)(hidden), num_classes, "small_resnet", weights)


def _convolution(hidden: keras.KerasTensor, filters: int, size: int, stride: int) -> keras.KerasTensor:
    """Rectify, convolve and normalise [B, h, w, C] to [B, h / stride, w / stride, filters]."""
    hidden = layers.Conv2D(filters, size, strides=stride, padding="same", use_bias=False)(layers.ReLU()(hidden))
    return layers.BatchNormalization(momentum=0.9)(hidden)
