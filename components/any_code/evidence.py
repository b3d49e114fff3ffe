"""What training code wrote about its model: `result.json` and, if it likes, `predictions.jsonl`.

A copy is in the folder `evaluation` of each registered model, so that the next model can be compared with it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.any_code.request import text
from exact_resume.checkpoints import seal
from exact_resume.checkpoints.result_file import RESULT_FILE
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import join_or, quote

PREDICTIONS_FILE = "predictions.jsonl"
_FOLDER = "evaluation"
_TEST = "test"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A line about a test example."""

    label: str
    prediction: str
    instance: Any
    """For a live prediction; None for none."""
    answer: Any
    """What the server answers to the instance."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The content of both files."""

    metrics: Mapping[str, Any]
    predictions: Mapping[str, Prediction]
    """By the ids of the test examples; empty without the file."""
    seen: frozenset[str]
    """Ids of examples of other splits; empty: not known."""

    def value(self, metric: str) -> float:
        """Return the value of a metric.

        Raises:
            UserError: It is missing, or not a finite number.
        """
        if metric not in self.metrics:
            raise UserError(f"{RESULT_FILE} has no metric {quote(metric)}; it has {join_or(self.metrics) or 'none'}")
        found = self.metrics[metric]
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            raise UserError(f"metric {quote(metric)} is {quote(found)} in {RESULT_FILE}; expected a finite number")
        return float(found)

    @property
    def figures(self) -> dict[str, float]:
        """The metrics that are finite numbers."""
        numbers = {name: each for name, each in self.metrics.items() if isinstance(each, int | float)}
        return {name: float(each) for name, each in numbers.items() if math.isfinite(each) and each is not True}


def read(folder: str) -> Evidence:
    """Return the evidence in a folder.

    Raises:
        UserError: `result.json` is missing or damaged, or a line of the predictions is wrong.
    """
    path = storage.join(folder, RESULT_FILE)
    result = storage.read_json(path)
    if not isinstance(result, dict) or not isinstance(result.get("metrics"), dict):
        raise UserError(
            f'{path} is missing or has no metrics; training code writes it last, e.g. {{"metrics": {{"loss": 0.5}}}}'
        )
    if seal.FIELD in result and not seal.is_intact(result):
        raise UserError(f"{path} is damaged: it does not match its own checksum; set another run_label to train again")
    predictions: dict[str, Prediction] = {}
    seen: set[str] = set()
    for place, line in _lines(storage.join(folder, PREDICTIONS_FILE)):
        try:
            name = text(f"{place}: id", line["id"])
            if line.get("split", _TEST) != _TEST:
                seen.add(name)
                continue
            if name in predictions:
                raise UserError(f"{place}: the id {quote(name)} is there twice")
            predictions[name] = Prediction(
                label=text(f"{place}: label", line["label"]),
                prediction=text(f"{place}: prediction", line["prediction"]),
                instance=line.get("instance"),
                answer=line.get("answer", line["prediction"]),
            )
        except KeyError as missing:
            raise UserError(f"{place}: {missing} is missing; expected id, label and prediction") from None
    return Evidence(metrics=result["metrics"], predictions=predictions, seen=frozenset(seen))


def read_of_model(model_directory: str) -> Evidence:
    """Return the evidence that a registered model was given; see `read`."""
    return read(storage.join(model_directory, _FOLDER))


def give_to_model(folder: str, model_directory: str) -> None:
    """Copy the evidence into the folder of the model."""
    for name in (RESULT_FILE, PREDICTIONS_FILE):
        source, target = storage.join(folder, name), storage.join(model_directory, _FOLDER, name)
        if storage.exists(source):
            storage.write_bytes(target, storage.read_bytes(source))
        elif storage.exists(target):
            # Of the model that this one was started from.
            storage.remove(target)


def _lines(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = storage.read_bytes(path).splitlines() if storage.exists(path) else []
    for number, data in enumerate(lines, 1):
        try:
            line = json.loads(data)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise UserError(f'{path} line {number} is not an object; expected {{"id": 1, "label": 0, "prediction": 0}}')
        yield f"{path} line {number}", line
