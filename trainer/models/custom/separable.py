"""An example to copy: depthwise separable blocks, fast on small images without a GPU."""

import keras
from keras import layers


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Build a network with the interface that the trainer expects.

    Args:
        image_size: S, height and width of the images in pixels.
        num_classes: K.
        weights: The value of --weights; `none` by default. This network has no pretrained weights.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K], with its preprocessing inside.
    """
    if weights != "none":
        raise ValueError(f"weights={weights!r} do not exist for this network; give none")
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = layers.Rescaling(1 / 127.5, offset=-1.0)(images)
    for filters in (32, 64, 128):
        hidden = layers.SeparableConv2D(filters, 3, strides=2, padding="same", use_bias=False)(hidden)
        hidden = layers.BatchNormalization(momentum=0.9)(hidden)
        hidden = layers.ReLU()(hidden)
    hidden = layers.GlobalAveragePooling2D()(hidden)
    hidden = layers.Dense(num_classes)(hidden)
    # float32 even where the rest of the network computes with 16 bits.
    return keras.Model(images, layers.Softmax(dtype="float32")(hidden))
