"""The answers of a batch prediction, read line by line from the files that the service wrote."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.spelling import quote
from trainer.command_line import TrainingError
from trainer.results.batch.instances import KEY_FIELD


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Prediction of the model for one image."""

    probability: float
    """Of the predicted class."""
    file_name: str
    label: str
    """Name of the predicted class."""


def read(directory: str) -> Iterator[Answer]:
    """Yield the answers of all files of predictions.

    Args:
        directory: The folder that the service made, with `prediction.results-...` or `predictions_...`.

    Raises:
        TrainingError: There is no answer, or a line has another form than this project's models return.
    """
    names = [name for name in storage.names(directory) if name.startswith("prediction") and "error" not in name]
    if not names:
        raise TrainingError(f"no predictions in {directory}; look at the log of the batch prediction job")
    for name in names:
        with open(storage.join(directory, name), "rb") as file:
            for number, line in enumerate(file, start=1):
                yield _answer(line, f"{name}:{number}")


def errors(directory: str) -> list[str]:
    """Return the first lines of the files in which the service reports errors."""
    found = []
    for name in storage.names(directory):
        if "error" in name:
            with open(storage.join(directory, name), "rb") as file:
                found += [line.decode(errors="replace").strip() for line, _ in zip(file, range(5), strict=False)]
    return [each for each in found if each][:5]


def _answer(line: bytes, where: str) -> Answer:
    try:
        content: Any = json.loads(line)
        key = content["key"] if "key" in content else content["instance"][KEY_FIELD]
        prediction = content["prediction"]
        label, probabilities = prediction["label"], [float(each) for each in prediction["probabilities"]]
        if not (isinstance(label, str) and probabilities and all(map(math.isfinite, probabilities))):
            raise ValueError("no label or no probabilities")
    except (ValueError, KeyError, TypeError, IndexError):
        raise TrainingError(
            f"{where} is {quote(line, 200)}; expected a key, and a prediction with label and probabilities: the"
            " model was not exported by this project"
        ) from None
    return Answer(file_name=str(key), label=label, probability=max(probabilities))
