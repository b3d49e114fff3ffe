"""The live prediction: test images are sent to the endpoint, whose answers must equal `evaluate`'s predictions."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.command_line import TrainingError
from trainer.data import dataset as datasets, staging

NUM_INSTANCES = 8
"""Few enough for one request: Vertex AI's limit is 1.5 MB."""
_MAX_REQUEST_BYTES = 1_000_000
TOLERANCE = 1e-4
"""Largest difference of a probability, as in `trainer.export`; the file of predictions has six digits."""


class WrongAnswerError(TrainingError):
    """The deployed version answers, and not what it answered when it was evaluated."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A live prediction: the request, and the comparison of the answers."""

    instances: Sequence[Any]
    """Instances of one request; empty: the version is not tried."""
    check: Callable[[Sequence[Any]], float]
    """Returns the largest difference of a number; raises `WrongAnswerError`."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A test image, and what the model answered for it in `evaluate`."""

    file_name: str
    image_bytes: bytes
    label: str
    """Name of the most probable class."""
    probability: float
    class_index: int

    @property
    def instance(self) -> dict[str, Any]:
        """The image as an instance of a prediction request."""
        return {"b64": base64.b64encode(self.image_bytes).decode()}


def expected_answers(dataset_directory: str, predictions_path: str) -> list[Expected]:
    """Return the first test images, and the predictions of `evaluate` for them.

    Raises:
        UserError: The dataset or the file of predictions cannot be used, or they do not belong together.
    """
    data = datasets.load(dataset_directory)
    indices = list(range(min(NUM_INSTANCES, data.num_examples["test"])))
    records = staging.stage(data, "test").records("test", indices)
    found: list[Expected] = []
    lines = map(json.loads, storage.read_bytes(predictions_path).splitlines())
    of_tests = (line for line in lines if line["split"] == "test")
    for record, line in zip(records, of_tests, strict=False):
        if line["file_name"] != record.file_name or line["predicted"] not in data.class_names:
            raise UserError(f"{predictions_path} has no prediction for {quote(record.file_name)}; run evaluate again")
        each = Expected(
            file_name=record.file_name,
            image_bytes=record.image_bytes,
            label=line["predicted"],
            probability=line["probability"],
            class_index=data.class_names.index(line["predicted"]),
        )
        if found and sum(len(one.image_bytes) for one in (*found, each)) * 4 / 3 > _MAX_REQUEST_BYTES:
            break
        found.append(each)
    if not found:
        raise UserError(f"{predictions_path} has no predictions on test images; run evaluate again")
    return found


def check(expected: Sequence[Expected], answers: Sequence[Any]) -> float:
    """Compare an endpoint's predictions with `evaluate`'s; return the largest difference of a probability.

    Args:
        expected: The images that were sent.
        answers: One mapping with `label` and `probabilities` per image.

    Raises:
        WrongAnswerError: A number or a probability differs.
    """
    if len(answers) != len(expected):
        raise WrongAnswerError(f"the endpoint gave {len(answers)} answers to {len(expected)} images")
    largest = 0.0
    for wanted, answer in zip(expected, answers, strict=True):
        try:
            probabilities = [float(each) for each in answer["probabilities"]]
            probability = probabilities[wanted.class_index]
            label = str(answer["label"])
        except (KeyError, IndexError, TypeError, ValueError):
            raise WrongAnswerError(
                f"the endpoint answered {quote(answer, 200)} for {quote(wanted.file_name)}; expected label and"
                " probabilities"
            ) from None
        difference = abs(probability - wanted.probability)
        # The same probability under another name: the classes are in another order.
        is_renamed = probability == max(probabilities) and label != wanted.label
        # Also false for NaN.
        if not difference <= TOLERANCE or is_renamed:
            raise WrongAnswerError(
                f"the endpoint answers {quote(label)}, with {probability:.6f} for {quote(wanted.label)}, for"
                f" {quote(wanted.file_name)}; evaluate's probability was {wanted.probability:.6f}"
            )
        largest = max(largest, difference)
    return largest
