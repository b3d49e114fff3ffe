"""A network that is traced in a fraction of a second, and whose result does not depend on the number of devices."""

import keras


def build(image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Return a model from uint8 [B, S, S, 3] to float32 [B, K]."""
    del weights
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = keras.layers.Rescaling(1 / 255)(images)
    hidden = keras.layers.Conv2D(4, 3, strides=4, activation="relu")(hidden)
    hidden = keras.layers.Flatten()(hidden)
    return keras.Model(images, keras.layers.Dense(num_classes, activation="softmax", dtype="float32")(hidden))
