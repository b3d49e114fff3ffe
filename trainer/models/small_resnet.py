"""A small residual network for photographs of 32 to 224 pixels, to train from random weights."""

import keras
from keras import layers

from trainer.models.weights import classifier


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Build four residual blocks (arXiv:1512.03385) of 16 to 128 channels, the mean over the image, and the classes.

    The first block works on at most 56 pixels at 224, 32 at 64: larger images are halved once or twice before it.

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
    hidden = layers.Rescaling(1 / 127.5, offset=-1.0)(images)
    hidden = layers.ReLU()(_convolution(hidden, 16, 3, stride=1 + (image_size > 40)))
    hidden = layers.MaxPooling2D(1 + (image_size > 80))(hidden)
    for filters in (16, 32, 64, 128):
        stride = 1 + (filters > 16)
        residual = layers.ReLU()(_convolution(hidden, filters, 3, stride=stride))
        residual = _convolution(residual, filters, 3, stride=1)
        hidden = _convolution(hidden, filters, 1, stride=stride)
        hidden = layers.ReLU()(layers.Add()([hidden, residual]))
    hidden = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(hidden))
    return classifier(images, hidden, num_classes=num_classes, name="small_resnet", weights=weights)


def _convolution(hidden: keras.KerasTensor, filters: int, size: int, *, stride: int) -> keras.KerasTensor:
    """Convolve and normalise [B, h, w, C] to [B, h / stride, w / stride, filters]."""
    hidden = layers.Conv2D(filters, size, strides=stride, padding="same", use_bias=False)(hidden)
    return layers.BatchNormalization(momentum=0.9)(hidden)
