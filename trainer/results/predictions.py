"""Predictions on a split, and the file of predictions (JSON Lines, documented in docs/evaluation.md)."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exact_resume.files import storage
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data.dataset import Dataset
from trainer.data.stored.records import data_uri
from trainer.data.stored.shards import damage_named
from trainer.files import outputs

if TYPE_CHECKING:
    import keras

_MAX_IMAGES, _MAX_IMAGE_BYTES = 200, 48 << 10
"""Number of mistakes, the most confident first, whose lines have the image; a larger image is left out."""


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions of a model for the images of a split, in the stored order."""

    split: str
    labels: npt.NDArray[np.int32]
    """Labels int32 [N]."""
    probabilities: npt.NDArray[np.float32]
    """Values float32 [N, K]."""


def predict(model: "keras.Model", dataset: Dataset, split: str) -> Predictions:
    """Return a model's predictions on a split, after one pass over its images.

    Raises:
        UserError: A shard is missing or damaged.
        TrainingError: A probability is not a number.
    """
    from trainer.data import batches, examples

    with damage_named():
        loaded = examples.load_split(dataset, split)
        probabilities = batches.predict(model, loaded)
    if number := int((~np.isfinite(probabilities).all(axis=1)).sum()):
        raise TrainingError(
            f"the model predicts values that are not finite for {number:,} of {len(probabilities):,} {split} images;"
            " look for overflows in the model"
        )
    return Predictions(split=split, labels=np.asarray(loaded.labels), probabilities=probabilities)


def check_path(name: str, path: str, report_path: str) -> None:
    """Refuse a file that cannot be written, or that is the report's; an empty path means no file.

    Args:
        name: The flag or parameter, which begins the message.
        path: File of the predictions.
        report_path: File of the page, which is written as well.

    Raises:
        UserError: The path cannot be used.
    """
    if path:
        outputs.check_file(name, path)
        real = {each if storage.is_remote(each) else os.path.realpath(each) for each in (path, report_path)}
        if len(real) == 1 and real != {os.devnull}:
            raise UserError(f"{name}={paths.display(path)} is the file of the report; give another file")


def lines(dataset: Dataset, predictions: Sequence[Predictions]) -> Iterator[str]:
    """Yield the lines of the file.

    Args:
        dataset: The dataset; the shards of the splits must be on this machine.
        predictions: Predictions on one or more splits.
    """
    names, position = dataset.class_names, 0
    labels = np.concatenate([each.labels for each in predictions])
    probabilities = np.concatenate([each.probabilities for each in predictions])
    with_image = set(ranked_mistakes(labels, probabilities)[:_MAX_IMAGES])
    for each in predictions:
        predicted = each.probabilities.argmax(axis=1)
        for index, record in enumerate(dataset.records(each.split)):
            content = {
                "file_name": record.file_name,
                "label": names[record.label],
                "predicted": names[predicted[index]],
                "probability": round(float(each.probabilities[index, predicted[index]]), 6),
                "split": each.split,
            }
            if position in with_image and len(record.image_bytes) <= _MAX_IMAGE_BYTES:
                content["image"] = data_uri(record.image_bytes)
            yield json.dumps(content) + "\n"
            position += 1


def ranked_mistakes(labels: npt.NDArray[Any], probabilities: npt.NDArray[Any]) -> list[int]:
    """Return the positions [M] of the mistakes among true classes [N], those with the highest probability first."""
    mistakes = np.flatnonzero(probabilities.argmax(axis=1) != labels)
    order = np.argsort(-probabilities[mistakes].max(axis=1), kind="stable")
    found: list[int] = mistakes[order].tolist()
    return found
