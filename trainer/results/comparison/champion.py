"""The champion: a SavedModel that answers encoded images, of this project or of another origin."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.files import downloads, storage
from trainer.results import exported, seen
from trainer.results.comparison.not_comparable import NotComparable
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import on_one_line

SIGNATURE, _INPUT = "serving_default", "image_bytes"
_GRAPH_FILES = ("saved_model.pb", "saved_model.pbtxt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Champion:
    """A model that was loaded."""

    class_names: frozenset[str] | None
    """The classes that it knows; None: not known."""
    image_size: int
    """Height and width of its images in pixels; 0: not known."""
    seen_images: seen.Hashes | None
    """None: not known."""
    answer: Callable[[Sequence[bytes]], list[str]]
    """Returns the class of each encoded image."""


@contextlib.contextmanager
def opened(folder: str) -> Iterator[Champion]:
    """Load a SavedModel.

    Args:
        folder: Local or gs://.

    Raises:
        NotComparable: Files are missing or damaged, or it does not take encoded images.
    """
    if not folder or not any(storage.exists(storage.join(folder, name)) for name in _GRAPH_FILES):
        raise NotComparable(f"the champion has no SavedModel in {folder!r}")
    names, size = None, 0
    if storage.exists(storage.join(folder, exported.METADATA_FILE)):
        try:
            metadata = exported.read(folder)
        except UserError as error:
            raise NotComparable(f"the champion cannot be evaluated: {error}") from error
        names, size = frozenset(metadata["class_names"]), metadata["image_size"]
    with downloads.local_copy(folder) as copy:
        try:
            loaded = tf.saved_model.load(copy)
        # Whatever is wrong with the files, or with operations that this TensorFlow does not have.
        except Exception as error:
            raise NotComparable(f"the champion in {folder!r} cannot be loaded: {on_one_line(error, 200)}") from error
        yield Champion(
            class_names=names,
            image_size=size,
            seen_images=seen.read(storage.join(folder, exported.SEEN_FILE)),
            answer=_answer(loaded),
        )


def _answer(loaded: Any) -> Callable[[Sequence[bytes]], list[str]]:
    """Return a function that calls the signature that is served, and holds the model."""
    found = loaded.signatures.get(SIGNATURE)
    inputs = found.structured_input_signature[1] if found else {}
    if set(inputs) != {_INPUT} or inputs[_INPUT].dtype != tf.string:
        takes = ", ".join(sorted(inputs)) or "nothing"
        raise NotComparable(f"the champion's {SIGNATURE} does not take {_INPUT} alone, but {takes}")
    label, scores = _labels(found.structured_outputs)

    def answer(images: Sequence[bytes]) -> list[str]:
        try:
            outputs = loaded.signatures[SIGNATURE](**{_INPUT: tf.constant(images, tf.string)})
        except tf.errors.InvalidArgumentError:
            # One of the images is of a kind that it does not decode.
            raise
        except Exception as error:
            raise NotComparable(f"the champion fails: {on_one_line(error, 200)}") from error
        names = np.asarray(outputs[label])
        if scores:
            names = names[np.arange(len(names)), np.asarray(outputs[scores]).argmax(axis=1)]
        if names.shape != (len(images),):
            raise NotComparable(f"the champion returns {label} of the shape {names.shape} for {len(images)} images")
        return [name.decode(errors="replace") for name in names.tolist()]

    return answer


def _labels(outputs: dict[str, Any]) -> tuple[str, str]:
    """Return the output with the class names, and the one with their scores, or "" if each image has one name.

    Raises:
        NotComparable: There are none.
    """
    texts = {name: spec.shape.rank or 1 for name, spec in outputs.items() if spec.dtype == tf.string}
    scores = [name for name, spec in outputs.items() if spec.dtype.is_floating and spec.shape.rank == 2]
    for name, rank in texts.items():
        if rank == 1:
            return name, ""
        if rank == 2 and len(scores) == 1:
            return name, scores[0]
    raise NotComparable(f"the champion's {SIGNATURE} does not return class names, but {', '.join(sorted(outputs))}")
