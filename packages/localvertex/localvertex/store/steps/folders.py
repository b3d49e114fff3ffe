"""Finds the step that made a resource, by the `gcp_resources` file that each launcher leaves in the step's folder."""

import json
from collections.abc import Iterator
from pathlib import Path

from localvertex.store import executor_files, record

_KINDS = ("CustomJob", "HyperparameterTuningJob", "UploadModel", "VertexLro")
"""The resources that local runs make."""


def with_resource(work_dir: Path, uri: str) -> list[Path]:
    """Return the folders of the steps of all runs that made, or passed on, the resource with this URI."""
    runs = [each for each in work_dir.iterdir() if (each / record.FILE).is_file()]
    return [each for run in runs for each in _steps(run) if _resource_of(each) == uri]


def _steps(folder: Path) -> Iterator[Path]:
    """Yield the folders of steps below the folder of a run or a dag; what is inside a step's folder is its own."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            if (each / executor_files.INPUT).is_file():
                yield each
            else:
                yield from _steps(each)


def _resource_of(folder: Path) -> str:
    """Return the URI of a step's resource; empty when it has none of those that local runs make."""
    try:
        resource = json.loads((folder / executor_files.RESOURCES).read_text())["resources"][0]
        return str(resource["resourceUri"]) if resource["resourceType"] in _KINDS else ""
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return ""
