"""Files of predictions (JSON Lines, docs/console.md), found among the output artifacts of a run's steps."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localvertex.console.runs.artifacts import ArtifactOf
from localvertex_base.userinput.regular_files import open_regular

_MAX_BYTES = 64 << 20
"""Larger files are not read."""

_TEXTS, _PROBABILITY = ("file_name", "label", "predicted"), "probability"
"""Fields that every line has."""

_IMAGE = re.compile(r"data:image/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]{1,200000}")

Key = tuple[str, str]
"""Split and name of an image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One line."""

    label: str
    predicted: str
    probability: float
    image: str
    """The image as a `data:` address; empty without one."""

    @property
    def is_right(self) -> bool:
        """Return whether the label is predicted."""
        return self.predicted == self.label


@dataclass(frozen=True, kw_only=True)
class PredictionFile:
    """The file of one run."""

    task: str
    artifact: str
    lines: dict[Key, Prediction] = field(default_factory=dict)
    """Of an image that occurs twice, the first one."""
    problem: str = ""
    """Why the file cannot be used; empty if it can."""


def outputs_of(run_dir: Path, content: dict[str, Any]) -> Iterator[tuple[dict[str, str], ArtifactOf]]:
    """Yield the output artifacts of the steps of a run, the first of each name, with the query of their addresses."""
    for task in content["tasks"]:
        for name, found in task["outputs"]["artifacts"].items() if task["kind"] == "step" else ():
            query = {"task": task["path"], "side": "outputs", "name": name, "index": "0"}
            if found:
                yield query, ArtifactOf(run_dir, content, query)


def find(run_dir: Path, content: dict[str, Any]) -> PredictionFile | None:
    """Return the first artifact of a run that is a file of predictions; None when it has none."""
    for query, artifact in outputs_of(run_dir, content):
        path, task, name = artifact.path(), query["task"], query["name"]
        if path is None or not path.is_file() or not _begins(path):
            continue
        if path.stat().st_size > _MAX_BYTES:
            problem = f"the file has more than {_MAX_BYTES >> 20} MiB"
            return PredictionFile(task=task, artifact=name, problem=problem)
        lines, problem = _read(path)
        return PredictionFile(task=task, artifact=name, lines=lines, problem=problem)
    return None


def _begins(path: Path) -> bool:
    """Return whether the first line of a file is a prediction."""
    try:
        with open_regular(path) as file:
            return _parse(file.readline(1 << 20)) is not None
    except (OSError, ValueError, RecursionError):
        return False


def _read(path: Path) -> tuple[dict[Key, Prediction], str]:
    """Return the predictions by image, and what is wrong with the file."""
    found: dict[Key, Prediction] = {}
    number = 0
    try:
        with open_regular(path) as file:
            for number, line in enumerate(file, 1):
                parsed = _parse(line)
                if parsed is None:
                    return found, f"line {number} is not a prediction"
                found.setdefault(*parsed)
    except (OSError, ValueError, RecursionError) as error:
        return found, f"line {number}: {error}"
    return found, ""


def _parse(line: bytes) -> tuple[Key, Prediction] | None:
    """Return the prediction of a line; None when it is something else.

    Raises:
        ValueError: It is not JSON.
    """
    content = json.loads(line)
    if not isinstance(content, dict) or not all(isinstance(content.get(name), str) for name in _TEXTS):
        return None
    probability, image, split = content.get(_PROBABILITY), content.get("image"), content.get("split")
    if not isinstance(probability, int | float) or not math.isfinite(probability):
        return None
    shown = image if isinstance(image, str) and _IMAGE.fullmatch(image) else ""
    key = (split if isinstance(split, str) else "", content["file_name"])
    values = {"label": content["label"], "predicted": content["predicted"]}
    return key, Prediction(**values, probability=float(probability), image=shown)
