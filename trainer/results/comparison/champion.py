"""The champion: an exported model that answers encoded images."""

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
    seen_images: seen.SeenImages | None
    """None: not known."""
    answer: Callable[[Sequence[bytes]], list[str]]
    """Returns the class of each encoded image."""


@contextlib.contextmanager
def load(folder: str) -> Iterator[Champion]:
    """Load a SavedModel.

    Args:
        folder: Local or gs://.

    Raises:
        NotComparable: Files are missing or damaged, or it is not an exported model.
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
            f"the champion has no {exported.METADATA_FILE} in {folder!r}, which names its classes; export"
            " the model again"
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
    if set(inputs) != {_INPUT} or not {"label", "probabilities"} <= set(found.structured_outputs):
        raise NotComparable(
            f"the champion's {SIGNATURE} does not map {_INPUT} to label and probabilities, as an exported model does"
        )

    def answer(images: Sequence[bytes]) -> list[str]:
        try:
            outputs = loaded.signatures[SIGNATURE](**{_INPUT: tf.constant(images, tf.string)})
            names, is_finite = outputs["label"].numpy(), np.isfinite(outputs["probabilities"]).all()
            if names.shape != (len(images),):
                raise ValueError(f"label has the shape {names.shape} for {len(images)} images")
            answers = [name.decode(errors="replace") for name in names.tolist()]
        except tf.errors.InvalidArgumentError:
            # One of the images is of a kind that it does not decode.
            raise
        except Exception as error:
            raise NotComparable(f"the champion fails: {on_one_line(error, 200)}") from error
        if not is_finite:
            raise NotComparable(
                "the champion returns probabilities that are not finite numbers (NaN or infinite); its weights are"
                " damaged",
                is_final=True,
            )
        if unknown := sorted(set(answers) - class_names):
            raise NotComparable(
                f"the champion answers {quote(unknown[0])}, but its {exported.METADATA_FILE} lists the classes"
                f" {quoted_list(class_names)}; correct that file"
            )
        return answers

    return answer
