"""What training code wrote about its model: `result.json` and, if it likes, `predictions.jsonl`.

A copy is in the folder `evaluation` of each registered model, so that the next model can be compared with it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.any_code.request import text
from exact_resume.checkpoints import seal
from exact_resume.checkpoints.result_file import RESULT_FILE
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote

PREDICTIONS_FILE = "predictions.jsonl"
_FOLDER = "evaluation"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The content of both files."""

    metrics: Mapping[str, Any]
    tests: Mapping[str, Mapping[str, Any]]
    """Lines about test examples by their ids, with label and prediction; empty without the file."""
    seen: frozenset[str]
    """Ids of examples of other splits; empty: not known."""

    @property
    def figures(self) -> dict[str, float]:
        """The metrics that are finite numbers."""
        return {name: each for name, each in self.metrics.items() if type(each) in (int, float) and math.isfinite(each)}

    def value(self, metric: str) -> float:
        """Return the value of a metric.

        Raises:
            UserError: It is missing, or not a finite number.
        """
        if metric not in self.figures:
            found = quote(self.metrics[metric]) if metric in self.metrics else f"not among {sorted(self.metrics)}"
            raise UserError(f"metric {quote(metric)} is {found} in {RESULT_FILE}; expected a finite number")
        return self.figures[metric]


def read(folder: str) -> Evidence:
    """Return the evidence in a folder.

    Raises:
        UserError: `result.json` is missing or damaged, or a line of the predictions is wrong.
    """
    path, lines = storage.join(folder, RESULT_FILE), storage.join(folder, PREDICTIONS_FILE)
    result = storage.read_json(path)
    is_intact = isinstance(result, dict) and (seal.FIELD not in result or seal.is_intact(result))
    if not is_intact or not isinstance(result.get("metrics"), dict):
        raise UserError(f'{path} is missing or damaged; training code writes it last: {{"metrics": {{"loss": 0.5}}}}')
    tests: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for number, data in enumerate(storage.read_bytes(lines).splitlines() if storage.exists(lines) else (), 1):
        try:
            line = json.loads(data)
            name = text("id", line["id"])
            if line.get("split", "test") != "test":
                seen.add(name)
                continue
            parsed = line | {field: text(field, line[field]) for field in ("label", "prediction")}
        except (ValueError, TypeError, KeyError, AttributeError, UserError):
            raise UserError(f"{lines} line {number}: expected id, label and prediction, texts or numbers") from None
        if name in tests:
            raise UserError(f"{lines} line {number}: the id {quote(name)} is there twice")
        tests[name] = {"answer": line["prediction"]} | parsed
    return Evidence(metrics=result["metrics"], tests=tests, seen=frozenset(seen))


def read_of_model(model_directory: str) -> Evidence:
    """Return the evidence that a registered model was given; see `read`."""
    return read(storage.join(model_directory, _FOLDER))


def give_to_model(folder: str, model_directory: str) -> None:
    """Copy the evidence into the folder of the model, in place of that of a model that it was started from."""
    for name in (RESULT_FILE, PREDICTIONS_FILE):
        source, target = storage.join(folder, name), storage.join(model_directory, _FOLDER, name)
        if storage.exists(source):
            storage.write_bytes(target, storage.read_bytes(source))
        elif storage.exists(target):
            storage.remove(target)
