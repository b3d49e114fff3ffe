"""The images on which runs differ, from the files of predictions of their steps."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from localvertex.console.comparing import prediction_files
from localvertex.console.comparing.prediction_files import Key, Prediction

_MAX_ROWS, _MIN_ROWS = 400, 10
"""Images in an answer, shared by its groups, and of each group at least."""


def compare(work_dir: Path, contents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the file of each run, None without one, and the images in groups by which runs are right.

    A group has the number of its images, the number of those on which the runs differ, and of these the ones with the
    most confident mistakes. Without a readable file of each run there are no groups.

    Args:
        work_dir: The folder of the runs.
        contents: The records of the runs.
    """
    files = [prediction_files.find(work_dir / content["id"], content) for content in contents]
    sources = [
        each and {"task": each.task, "artifact": each.artifact, "num_images": len(each.lines), "problem": each.problem}
        for each in files
    ]
    readable = [each.lines for each in files if each and not each.problem]
    if len(readable) < len(files):
        return {"sources": sources, "num_common": 0, "groups": []}
    common = [key for key in readable[0] if all(key in each for each in readable)]
    patterns: dict[tuple[bool, ...], list[Key]] = {}
    for key in common:
        patterns.setdefault(tuple(each[key].is_right for each in readable), []).append(key)
    images, num_rows = _Images(work_dir, contents), max(_MIN_ROWS, _MAX_ROWS // max(len(patterns), 1))
    groups = [_group(readable, pattern, keys, images, num_rows) for pattern, keys in patterns.items()]
    groups.sort(key=lambda group: group["is_right"], reverse=True)
    return {"sources": sources, "num_common": len(common), "groups": groups}


class _Images:
    """The images that the artifacts of runs contain, by name."""

    def __init__(self, work_dir: Path, contents: list[dict[str, Any]]) -> None:
        self._folders = [
            (content["id"], query, artifact)
            for content in contents
            for query, artifact in prediction_files.outputs_of(work_dir / content["id"], content)
            if (path := artifact.path()) and path.is_dir()
        ]

    def address(self, name: str) -> str:
        """Return the address of an image, empty when no artifact has it."""
        for run_id, query, artifact in self._folders:
            if artifact.has_image(name):
                return f"/local/runs/{run_id}/artifact/file?{urlencode({**query, 'file': name})}"
        return ""


def _group(
    readable: list[dict[Key, Prediction]], pattern: tuple[bool, ...], keys: list[Key], images: _Images, num_rows: int
) -> dict[str, Any]:
    """Return the images for which the same runs are right."""
    found = [(key, [each[key] for each in readable]) for key in keys]
    differing = [each for each in found if len({prediction.predicted for prediction in each[1]}) > 1]
    differing.sort(key=lambda each: (-_confidence(each[1]), each[0]))
    return {
        "is_right": list(pattern),
        "num_images": len(keys),
        "num_differing": len(differing),
        "images": [_row(key, predictions, images) for key, predictions in differing[:num_rows]],
    }


def _confidence(predictions: list[Prediction]) -> float:
    """Return the probability of the most confident mistake."""
    return max((each.probability for each in predictions if not each.is_right), default=0.0)


def _row(key: Key, predictions: list[Prediction], images: _Images) -> dict[str, Any]:
    """Return an image with its label, what each run predicts, and where the image is."""
    split, name = key
    stored = next((each.image for each in predictions if each.image), "")
    return {
        "split": split,
        "file_name": name,
        "labels": [*dict.fromkeys(each.label for each in predictions)],
        "image": stored or images.address(name),
        "predictions": [
            {"predicted": each.predicted, "probability": each.probability, "is_right": each.is_right}
            for each in predictions
        ],
    }
