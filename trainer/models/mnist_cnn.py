"""The network of a 2018 article that trained MNIST on several GPUs of AI Platform: five convolutions of 128."""

import keras
from keras import layers, ops

from localvertex._base.userinput.errors import UserError
from trainer.models.weights import classifier


@keras.saving.register_keras_serializable(package="trainer")
class Grey(layers.Layer):  # type: ignore[misc]
    """Converts colour to one grey channel in 0 to 1, as MNIST is stored."""

    def call(self, images: keras.KerasTensor) -> keras.KerasTensor:
        """Convert images uint8 [B, S, S, 3] to float32 [B, S, S, 1]."""
        return ops.mean(ops.cast(images, self.compute_dtype), axis=-1, keepdims=True) / 255.0


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
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
