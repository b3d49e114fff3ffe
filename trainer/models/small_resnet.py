"""A small residual network for photographs of 32 to 224 pixels, to train from random weights."""

import keras
from keras import layers

from trainer.models.weights import classifier


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
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
