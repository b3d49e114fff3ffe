"""The champion: a SavedModel that answers encoded images, of this project or of another origin."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from exact_resume.files import downloads, storage
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line, quote
from trainer.checkpoints import seen
from trainer.results import exported
from trainer.results.comparison.class_names import quoted_list
from trainer.results.comparison.not_comparable import NotComparable

SIGNATURE, _INPUT = "serving_default", "image_bytes"
_GRAPH_FILE = "saved_model.pb"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Champion:
    """A model that was loaded."""

    class_names: frozenset[str]
    """The classes that the champion knows; its answers are among them."""
    image_size: int
    """Height and width of the champion's images in pixels."""
    seen_images: seen.Hashes | None
    """None: not known."""
    answer: Callable[[Sequence[bytes]], list[str]]
    """Returns the class of each encoded image."""


@contextlib.contextmanager
def load(folder: str) -> Iterator[Champion]:
    """Load a SavedModel.

    Args:
        folder: Local or gs://.

    Raises:
        NotComparable: Files are missing or damaged, or it does not take encoded images.
    """
    if not folder or not storage.exists(storage.join(folder, _GRAPH_FILE)):
        raise NotComparable(f"the champion has no SavedModel in {folder!r}")
    names, size = _metadata(folder)
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
            answer=_answer(loaded, names),
        )


def _metadata(folder: str) -> tuple[frozenset[str], int]:
    """Return the class names, which are needed to judge answers, and the image size."""
    path = storage.join(folder, exported.METADATA_FILE)
    if not storage.exists(path):
        raise NotComparable(
            f"the champion has no {exported.METADATA_FILE} in {folder!r}, which names its classes; write"
            ' {"class_names": ["CLASS", "CLASS"], "image_size": PIXELS} into it'
        )
    try:
        metadata = exported.read(folder)
    except (UserError, OSError) as error:
        raise NotComparable(f"the champion cannot be evaluated: {on_one_line(error)}") from error
    names = metadata["class_names"]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or not all(name.strip() for name in names):
        wrong = f"{quote(twice[0])} twice" if twice else "a class without a name"
        raise NotComparable(
            f"the champion's {exported.METADATA_FILE} in {folder!r} has {wrong}; correct it, or export the model again"
        )
    return frozenset(names), metadata["image_size"]


def _answer(loaded: Any, class_names: frozenset[str]) -> Callable[[Sequence[bytes]], list[str]]:
    """Return a function that calls the signature that is served, and holds the model."""
    found = loaded.signatures.get(SIGNATURE)
    inputs = found.structured_input_signature[1] if found else {}
    if set(inputs) != {_INPUT} or inputs[_INPUT].dtype != tf.string:
        takes = ", ".join(sorted(inputs)) or "nothing"
        raise NotComparable(f"the champion's {SIGNATURE} does not take {_INPUT} alone, but {takes}")
    label, scores = _labels(found.structured_outputs)
    floats = sorted(name for name, spec in found.structured_outputs.items() if spec.dtype.is_floating)

    def answer(images: Sequence[bytes]) -> list[str]:
        try:
            called = loaded.signatures[SIGNATURE](**{_INPUT: tf.constant(images, tf.string)})
            outputs = {name: np.asarray(value) for name, value in called.items() if name in (label, *floats)}
            infinite = [name for name in floats if not np.isfinite(outputs[name]).all()]
        except tf.errors.InvalidArgumentError:
            # One of the images is of a kind that it does not decode.
            raise
        except Exception as error:
            raise NotComparable(f"the champion fails: {on_one_line(error, 200)}") from error
        if infinite:
            raise NotComparable(
                f"the champion returns {infinite[0]} that are not finite numbers (NaN or infinite); its weights are"
                " damaged",
                is_final=True,
            )
        names = outputs[label]
        if scores and names.size and names.shape == outputs[scores].shape:
            names = names[np.arange(len(names)), outputs[scores].argmax(axis=1)]
        if names.shape != (len(images),):
            raise NotComparable(f"the champion returns {label} of the shape {names.shape} for {len(images)} images")
        answers = [name.decode(errors="replace") for name in names.tolist()]
        if unknown := sorted(set(answers) - class_names):
            raise NotComparable(
                f"the champion answers {quote(unknown[0])}, but its {exported.METADATA_FILE} lists the classes"
                f" {quoted_list(class_names)}; correct that file"
            )
        return answers

    return answer


def _labels(outputs: dict[str, Any]) -> tuple[str, str]:
    """Return the output with the class names, and the one with their scores, or "" if each image has one name.

    Raises:
        NotComparable: The model has no class names.
    """
    texts = {name: spec.shape.rank or 1 for name, spec in outputs.items() if spec.dtype == tf.string}
    scores = [name for name, spec in outputs.items() if spec.dtype.is_floating and spec.shape.rank == 2]
    for name, rank in texts.items():
        if rank == 1:
            return name, ""
        if rank == 2 and len(scores) == 1:
            return name, scores[0]
    raise NotComparable(f"the champion's {SIGNATURE} does not return class names, but {', '.join(sorted(outputs))}")
