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
from localvertex._base.userinput.shape import NUMBER, check
from localvertex.show.view.artifacts import ShownArtifact
from localvertex.values.buckets import Buckets

OUTPUT = "predictions"

_NUM_SHOWN = 30

_MAX_BYTES, _MAX_LINE_BYTES = 256 << 20, 96 << 10
"""Limits of the file, and of a line in it."""

_SHOWN = ("file_name", "label", "predicted", "image", "probability")
_LINE = {f"{each}!": NUMBER if each == "probability" else str for each in _SHOWN}

_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def of_step(run_dir: Path, content: JsonObject, path: str) -> list[JsonObject]:
    """Return the worst mistakes in the predictions of a step; none if it has no such output.

    Args:
        run_dir: The folder of the run.
        content: The record of the run.
        path: Path of the step.
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
        check(content, _LINE)
    except (UserError, ValueError):
        return None
    is_sound = 0 <= content["probability"] <= 1 and _IMAGE.fullmatch(content["image"])
    if not is_sound or content["label"] == content["predicted"]:
        return None
    return {each: content[each] for each in _SHOWN}
