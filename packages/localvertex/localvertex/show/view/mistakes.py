"""The worst mistakes of a model, from the predictions that a step wrote as JSON Lines in an output `predictions`.

A line has `file_name`, `label`, `predicted`, `probability` from 0 to 1, and an `image` as a data: URL.
"""

import heapq
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.regular_files import open_regular
from localvertex.show.view.artifacts import ShownArtifact
from localvertex.values.buckets import Buckets

OUTPUT = "predictions"

_NUM_SHOWN = 30

_MAX_BYTES, _MAX_LINE_BYTES = 256 << 20, 96 << 10
"""Of the file, and of a line in it."""

_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def of_step(run_dir: Path, content: JsonObject, path: str) -> list[JsonObject]:
    """Return the worst mistakes in the predictions of a step; none if it has no such output.

    Args:
        run_dir: The folder of the run.
        content: The record of the run.
        path: Of the step.
    """
    task = next((each for each in content["tasks"] if each["path"] == path), None)
    found = task["outputs"]["artifacts"].get(OUTPUT, []) if task else []
    files = (ShownArtifact(run_dir, Buckets.of_record(content), OUTPUT, each).file("") for each in found[:1])
    return [each for file in files if file for each in worst(file)]


def worst(file: Path) -> list[JsonObject]:
    """Return the mistakes with the largest probability of a file, the largest first."""
    try:
        return heapq.nlargest(_NUM_SHOWN, _mistakes(file), key=lambda each: each["probability"])
    except OSError:
        return []


def _mistakes(file: Path) -> Iterator[JsonObject]:
    left = _MAX_BYTES
    with open_regular(file) as lines:
        while left > 0 and (line := lines.readline(_MAX_LINE_BYTES)):
            left -= len(line)
            # Most lines have no image.
            if b'"image"' in line and (found := _mistake(line)):
                yield found


def _mistake(line: bytes) -> JsonObject | None:
    try:
        content: Any = parse_json(line.decode(), "the line")
    except (UserError, UnicodeDecodeError):
        return None
    if not isinstance(content, dict):
        return None
    texts = {name: content.get(name) for name in ("file_name", "label", "predicted", "image")}
    probability = content.get("probability")
    is_sound = all(isinstance(each, str) for each in texts.values()) and isinstance(probability, int | float)
    if not is_sound or not 0 <= probability <= 1 or not _IMAGE.fullmatch(texts["image"]):
        return None
    if texts["label"] == texts["predicted"]:
        return None
    return {name: each if name == "image" else each[:200] for name, each in texts.items()} | {"probability": probability}
