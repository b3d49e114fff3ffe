"""The networks of `keras.applications` with a new head; resnet50's is from Google's codelab."""

from typing import Any

import keras
from keras import layers

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.models.table import Application
from trainer.models.weights import classifier, load_weights

_DROPOUT = 0.2
"""Dropout rate before the classes if the head has no hidden layer."""


@keras.saving.register_keras_serializable(package="trainer")
class Preprocessing(layers.Layer):  # type: ignore[misc]
    """A network's own preprocessing, such as blue-green-red order and subtracting ImageNet's mean."""

    def __init__(self, module: str, **options: object) -> None:
        """Use the preprocess_input of a module of `keras.applications`."""
        super().__init__(**options)
        self.module = module

    def call(self, images: keras.KerasTensor) -> keras.KerasTensor:
        """Convert images uint8 [B, S, S, 3] to float32 [B, S, S, 3]."""
        # Subtract in float32 under every policy, because 16 bits are too few for a mean such as 103.939.
        return getattr(keras.applications, self.module).preprocess_input(keras.ops.cast(images, "float32"))

    def get_config(self) -> dict[str, object]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "module": self.module}


def build(
    application: Application, *, image_size: int, num_classes: int, weights: str, is_pretrained: bool, is_frozen: bool
) -> keras.Model:
    """Build the base without its top, the mean over the image, and a head.

    The batch normalisation of a pretrained base is never trained, even if the base is: small batches of other images
    would spoil its statistics faster than the weights could adapt. A frozen base has no dropout either.

    Args:
        application: The network.
        image_size: S.
        num_classes: K.
        weights: `imagenet`, `none`, or a path to weights of the base (the application without its top).
        is_pretrained: Whether the base has or gets trained weights.
        is_frozen: Whether only the head is trained.

    Returns:
        A Keras model, uint8 [B, S, S, 3] -> float32 [B, K].

    Raises:
        UserError: The images are too small, or the weights are not available.
    """
    if image_size < (smallest := application.smallest_image_size):
        raise UserError(
            f"{application.name} needs images of at least {smallest}x{smallest} pixels, the dataset has"
            f" {image_size}x{image_size}; prepare it with image_size={application.usual_image_size}"
        )
    base = _base(application, image_size, weights)
    base.trainable = not is_frozen
    if is_pretrained:
        _keep_statistics(base, is_frozen)
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="images")
    hidden = Preprocessing(application.preprocessing, name="preprocessing")(images)
    hidden = base(hidden)
    hidden = layers.GlobalAveragePooling2D(name="mean")(hidden)
    if application.head_units:
        hidden = layers.Dense(application.head_units, activation="relu", name="head")(hidden)
    else:
        hidden = layers.Dropout(_DROPOUT, name="dropout")(hidden)
    name = f"{application.name.replace('-', '_')}_classifier"
    return classifier(images, hidden, num_classes, name)


def _base(application: Application, image_size: int, weights: str) -> keras.Model:
    make = getattr(keras.applications, application.function)
    shape = (image_size, image_size, 3)
    # Always built without weights, because with weights="imagenet" Keras gives some families another graph.
    base = make(weights=None, include_top=False, input_shape=shape)
    if weights == "imagenet":
        try:
            base.set_weights(make(weights="imagenet", include_top=False, input_shape=shape).get_weights())
        except Exception as error:
            reason = on_one_line(error)
            raise UserError(
                f"{application.name}'s imagenet weights could not be downloaded ({reason}); allow access to the host,"
                " or download that file (..._notop.h5) elsewhere and put it into ~/.keras/models, or give its path as"
                " weights; weights=none starts from random weights"
            ) from error
    elif weights != "none":
        load_weights(base, weights)
    if weights != "none" and application.preprocessing == "efficientnet":
        _square_the_variance(base)
    return base


def _keep_statistics(base: keras.Model, is_frozen: bool) -> None:
    # Layer by layer, because the whole model's training=True overrides base(images, training=False).
    for layer in base.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.trainable = False
        elif is_frozen and isinstance(layer, layers.Dropout):
            layer.rate = 0.0


def train_base(model: keras.Model, num_layers: int) -> Any:
    """Train the last layers of a base besides the head.

    The base stays in inference mode, as in Keras' guide on transfer learning: without dropout, and with the batch
    normalisation as it is.

    Args:
        model: From `build`.
        num_layers: Counted as in `base.layers`; 0: all.

    Returns:
        The variables of the base that are trained now, a list.

    Raises:
        UserError: The base has fewer layers, or these have no weights.
    """
    # After the images and their preprocessing.
    base = model.layers[2]
    base.trainable = True
    _keep_statistics(base, True)
    for layer in base.layers[:-num_layers]:
        layer.trainable = False
    if num_layers > len(base.layers) or not base.trainable_variables:
        raise UserError(
            f"recipe: fine_tuning.layers is {num_layers}, but the base has {len(base.layers)} layers, of which the last"
            " may have no weights; give another number, or leave it out to train all"
        )
    return base.trainable_variables


def _square_the_variance(base: keras.Model) -> None:
    """Set the variance of EfficientNet's normalisation, for which its published weights have the standard deviation.

    Keras compensates with one more layer (Rescaling by 1 / sqrt(stddev)), but only with weights="imagenet".
    """
    normalization = base.get_layer(index=2)
    normalization.adapt_variance.assign(normalization.adapt_variance**2)
    normalization.finalize_state()


def refresh(model: keras.Model) -> None:
    """Recompute what a model's layers derive from its variables, after values were assigned to these."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            refresh(layer)
        elif isinstance(layer, layers.Normalization):
            layer.finalize_state()
