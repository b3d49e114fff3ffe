"""ResNet50 with a new head, as in Google's codelab on multi-worker training (head of 1016 units, Adam 0.0001)."""

from __future__ import annotations

import keras
from keras import layers

from trainer.errors import UserError
from trainer.models import weights as weight_files

SMALLEST_IMAGE_SIZE = 32


@keras.saving.register_keras_serializable(package="trainer")
class CaffePreprocessing(layers.Layer):  # type: ignore[misc]
    """ResNet50's own preprocessing: channels in blue-green-red order, ImageNet's mean taken off."""

    def call(self, images: keras.KerasTensor) -> keras.KerasTensor:
        """Images uint8 [B, S, S, 3] -> float32 [B, S, S, 3]."""
        # The mean (103.9, 116.8, 123.7) does not fit bfloat16 well: subtract in float32, whatever the policy.
        return keras.applications.resnet50.preprocess_input(keras.ops.cast(images, "float32"))


def build(*, image_size: int, num_classes: int, weights: str) -> keras.Model:
    """Frozen base in inference mode with imagenet weights or a file's; with weights="none" everything is trained.

    Args:
        image_size: S, at least 32 pixels.
        num_classes: K.
        weights: imagenet, none, or a path to weights of the base (keras.applications.ResNet50 without its top).

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: the images are too small, or the weights cannot be had.
    """
    if image_size < SMALLEST_IMAGE_SIZE:
        raise UserError(f"resnet50 needs images of at least 32x32 pixels, the dataset has {image_size}x{image_size}")
    base = _base(image_size, weights)
    frozen = weights != "none"
    base.trainable = not frozen
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="images")
    hidden = CaffePreprocessing(name="preprocessing")(images)
    # training=False also keeps the batch normalisation of a frozen base at the statistics it was trained with.
    hidden = base(hidden, training=False) if frozen else base(hidden)
    hidden = layers.GlobalAveragePooling2D(name="mean")(hidden)
    hidden = layers.Dense(1016, activation="relu", name="head")(hidden)
    hidden = layers.Dense(num_classes, name="logits")(hidden)
    outputs = layers.Softmax(dtype="float32", name="probabilities")(hidden)
    model = keras.Model(images, outputs, name="resnet50_classifier")
    return model


def _base(image_size: int, weights: str) -> keras.Model:
    shape = (image_size, image_size, 3)
    if weights == "imagenet":
        try:
            return keras.applications.ResNet50(weights="imagenet", include_top=False, input_shape=shape)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                "resnet50's imagenet weights could not be downloaded from storage.googleapis.com/tensorflow/"
                f"keras-applications ({reason}); allow that host, or fetch"
                " resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5 from there and give its path as weights, or say"
                " weights=none to train from random weights"
            ) from error
    base = keras.applications.ResNet50(weights=None, include_top=False, input_shape=shape)
    if weights != "none":
        weight_files.load(base, weights)
    return base
