"""The exported model: the content of its folder, its signatures, and reading it back.

Legend: B batch, S image size, K classes.
`serving_default`: image_bytes string [B] -> probabilities float32 [B, K], label string [B].
`images`: images uint8 [B, S, S, 3] -> the same.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from exact_resume.files import downloads, storage
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import seen
from trainer.checkpoints.starting_weights import StartingWeights
from trainer.results import calibration, exported, serving


def write(
    model: keras.Model,
    directory: str,
    *,
    class_names: list[str],
    image_size: int,
    metadata: dict[str, Any],
    seen_images: seen.SeenImages | None,
) -> None:
    """Write the SavedModel into an empty folder.

    Args:
        model: Maps uint8 [B, S, S, 3] to float32 [B, K].
        directory: Local and empty.
        class_names: K names.
        image_size: S.
        metadata: Stored with the class names and the image size, ready for JSON. The probabilities get its
            `temperature`, see `trainer.results.calibration`; 1 if there is none.
        seen_images: Stored in files of their own; None: unknown.
    """
    names, temperature = tf.constant(class_names), metadata.get("temperature", 1.0)

    def images(images: tf.Tensor) -> dict[str, tf.Tensor]:
        found = model(images, training=False)
        probabilities = tf.nn.softmax(tf.math.log(found + calibration.SMALLEST) / temperature)
        return {"probabilities": probabilities, "label": tf.gather(names, tf.argmax(found, axis=-1))}

    # Vertex AI's prebuilt serving unpacks {"b64": ...} only for inputs whose name ends in _bytes.
    def serving_default(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
        return images(serving.decode_and_resize(image_bytes, image_size))

    archive = keras.export.ExportArchive()
    archive.track(model)
    shape = [None, image_size, image_size, 3]
    archive.add_endpoint(
        "serving_default", serving_default, input_signature=[tf.TensorSpec([None], tf.string, name="image_bytes")]
    )
    archive.add_endpoint("images", images, input_signature=[tf.TensorSpec(shape, tf.uint8, name="images")])
    archive.write_out(directory, verbose=False)
    content = {"class_names": class_names, "image_size": image_size, **metadata}
    storage.write_json(os.path.join(directory, exported.METADATA_FILE), content)
    if seen_images is not None:
        seen.write(os.path.join(directory, exported.SEEN_FILE), seen_images, is_public=True)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A SavedModel that `write` wrote."""

    class_names: list[str]
    image_size: int
    loaded: Any
    """Must be kept: its signatures only hold weak references to its variables."""

    def predict(self, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Return the probabilities float32 [B, K] of images uint8 [B, S, S, 3]."""
        return np.asarray(self.loaded.signatures["images"](images=tf.constant(images))["probabilities"])


def load(directory: str) -> LoadedModel:
    """Open an exported model.

    Raises:
        UserError: The folder is not a model that `write` wrote.
    """
    metadata = exported.read(directory)
    with downloads.local_copy(directory) as folder:
        try:
            loaded = tf.saved_model.load(folder)
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise _damage_error(directory, error) from error
    if "images" not in loaded.signatures:
        raise _damage_error(directory, "it has no signature images")
    return LoadedModel(class_names=metadata["class_names"], image_size=metadata["image_size"], loaded=loaded)


def starting_weights(directory: str) -> StartingWeights:
    """Return the weights of an exported model, for a training that starts from them.

    Raises:
        UserError: The folder is not a model that `write` wrote, or it is damaged.
    """
    metadata = exported.read(directory)
    if not isinstance(metadata.get("model"), str):
        raise _damage_error(directory, "its network has no name")
    with downloads.local_copy(directory) as folder:
        try:
            arrays = _arrays(os.path.join(folder, "variables", "variables"))
        except (OSError, ValueError, IndexError, tf.errors.OpError) as error:
            # The reader raises IndexError for a file that is too short.
            raise _damage_error(directory, error) from error
    return StartingWeights(
        model=metadata["model"],
        class_names=tuple(metadata["class_names"]),
        arrays=arrays,
        seen_images=seen.read(storage.join(directory, exported.SEEN_FILE)),
    )


def _arrays(prefix: str) -> list[npt.NDArray[Any]]:
    """Return the model's variables, in order, which Keras' archive has as a list."""
    reader = tf.train.load_checkpoint(prefix)
    names = {key for key in reader.get_variable_to_shape_map() if re.fullmatch(r"variables/\d+/.*VALUE", key)}
    ordered = sorted(names, key=lambda key: int(key.split("/")[1]))
    return [np.asarray(reader.get_tensor(key)) for key in ordered]


def _damage_error(directory: str, error: Exception | str) -> UserError:
    return UserError(f"model {directory!r} is damaged ({str(error).splitlines()[0]}); export it again")
