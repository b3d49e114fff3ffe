"""The images on which runs differ, from the files of predictions that their steps wrote (docs/console.md)."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from localvertex.serve.api.errors import ApiError
from localvertex.serve.console.runs.artifacts import ArtifactOf

_MAX_BYTES = 256 << 20
"""Larger files of predictions are not read."""

_MAX_ROWS = 100
"""Images of each group in an answer."""

_FIELDS = {"file_name": str, "label": str, "predicted": str, "probability": (int, float)}

_IMAGE = re.compile(r"data:image/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]{1,200000}")

Key = tuple[str, str]
"""Split and name of an image."""


@dataclass(frozen=True, kw_only=True)
class _Prediction:
    label: str
    predicted: str
    probability: float
    image: str

    @property
    def is_right(self) -> bool:
        return self.predicted == self.label


@dataclass(frozen=True, kw_only=True)
class _File:
    """The predictions of one run."""

    task: str
    artifact: str
    lines: dict[Key, _Prediction]
    problem: str = ""


def compared(work_dir: Path, contents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return groups of images by which runs are right, with images on which the runs differ.

    Args:
        work_dir: The folder of the runs.
        contents: The records of the runs.

    Returns:
        `sources`: the file of each run, None without one. `groups`: for each pattern of right and wrong the number of
        images, on how many of them the predictions differ, and of those the ones with the most confident mistakes.
    """
    files = [_find(work_dir / content["id"], content) for content in contents]
    sources = [
        each and {"task": each.task, "artifact": each.artifact, "num_images": len(each.lines), "problem": each.problem}
        for each in files
    ]
    readable = [each.lines for each in files if each]
    if len(readable) < len(files) or any(each and each.problem for each in files):
        return {"sources": sources, "num_common": 0, "groups": []}
    common = [key for key in readable[0] if all(key in each for each in readable)]
    groups: dict[tuple[bool, ...], list[Key]] = {}
    for key in common:
        groups.setdefault(tuple(each[key].is_right for each in readable), []).append(key)
    found = [
        _group(work_dir, contents, readable, pattern, keys) for pattern, keys in sorted(groups.items(), reverse=True)
    ]
    return {"sources": sources, "num_common": len(common), "groups": found}


def _group(
    work_dir: Path,
    contents: list[dict[str, Any]],
    readable: list[dict[Key, _Prediction]],
    pattern: tuple[bool, ...],
    keys: list[Key],
) -> dict[str, Any]:
    differing = [key for key in keys if len({each[key].predicted for each in readable}) > 1]

    def confidence(key: Key) -> float:
        return max((each[key].probability for each in readable if not each[key].is_right), default=0.0)

    shown = sorted(differing, key=lambda key: (-confidence(key), key))[:_MAX_ROWS]
    return {
        "is_right": list(pattern),
        "num_images": len(keys),
        "num_differing": len(differing),
        "images": [_row(work_dir, contents, readable, key) for key in shown],
    }


def _row(
    work_dir: Path, contents: list[dict[str, Any]], readable: list[dict[Key, _Prediction]], key: Key
) -> dict[str, Any]:
    """Return an image with its label, what each run predicts, and where the image is."""
    own = [each[key] for each in readable]
    labels = [*dict.fromkeys(each.label for each in own)]
    image = next((each.image for each in own if each.image), "") or _address(work_dir, contents, key[1])
    values = [{"predicted": each.predicted, "probability": each.probability, "is_right": each.is_right} for each in own]
    return {"split": key[0], "file_name": key[1], "labels": labels, "image": image, "predictions": values}


def _address(work_dir: Path, contents: list[dict[str, Any]], name: str) -> str:
    """Return the address of an image's file if an artifact of one of the runs has it, else an empty text."""
    for content in contents:
        for query, artifact in _artifacts(work_dir / content["id"], content):
            try:
                artifact.file(name, is_download=False)
            except (ApiError, OSError, ValueError):
                continue
            return f"/local/runs/{content['id']}/artifact/file?{urlencode({**query, 'file': name})}"
    return ""


def _artifacts(run_dir: Path, content: dict[str, Any]) -> Iterator[tuple[dict[str, str], ArtifactOf]]:
    """Yield the output artifacts of the steps of a run, the first of each name, with the query of their addresses."""
    for task in content["tasks"]:
        for name, found in task["outputs"]["artifacts"].items() if task["kind"] == "step" else ():
            query = {"task": task["path"], "side": "outputs", "name": name, "index": "0"}
            if found:
                yield query, ArtifactOf(run_dir, content, query)


def _find(run_dir: Path, content: dict[str, Any]) -> _File | None:
    """Return the first artifact of a run that is a file of predictions; None when it has none."""
    for query, artifact in _artifacts(run_dir, content):
        path = artifact.path()
        if path is None or not path.is_file() or not _begins(path):
            continue
        if path.stat().st_size > _MAX_BYTES:
            problem = f"the file has more than {_MAX_BYTES >> 20} MiB"
            return _File(task=query["task"], artifact=query["name"], lines={}, problem=problem)
        lines, problem = _read(path)
        return _File(task=query["task"], artifact=query["name"], lines=lines, problem=problem)
    return None


def _begins(path: Path) -> bool:
    """Return whether the first line of a file is a prediction."""
    try:
        with path.open("rb") as file:
            return _parsed(file.readline(1 << 20)) is not None
    except (OSError, ValueError, TypeError):
        return False


def _read(path: Path) -> tuple[dict[Key, _Prediction], str]:
    """Return the predictions by image, of an image that occurs twice the first, and what is wrong with the file."""
    found: dict[Key, _Prediction] = {}
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                parsed = _parsed(line)
                if parsed is None:
                    return found, f"line {number} is not a prediction"
                found.setdefault(*parsed)
    except (OSError, ValueError, TypeError) as error:
        return found, f"line {len(found) + 1}: {error}"
    return found, ""


def _parsed(line: bytes) -> tuple[Key, _Prediction] | None:
    """Return the prediction of a line; None when it is another object.

    Raises:
        ValueError: It is not JSON.
    """
    content = json.loads(line)
    if not isinstance(content, dict) or not all(isinstance(content.get(name), kind) for name, kind in _FIELDS.items()):
        return None
    probability, image, split = float(content["probability"]), content.get("image", ""), content.get("split", "")
    if not math.isfinite(probability) or not isinstance(split, str):
        return None
    shown = image if isinstance(image, str) and _IMAGE.fullmatch(image) else ""
    names = {name: content[name] for name in ("label", "predicted")}
    return (split, content["file_name"]), _Prediction(**names, probability=probability, image=shown)
