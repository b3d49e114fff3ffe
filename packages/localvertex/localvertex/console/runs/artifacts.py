"""The artifacts of a step: what the page shows of each, and its files."""

from pathlib import Path
from typing import Any

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.console import file_responses
from localvertex.show.view.artifacts import MAX_SHOWN_BYTES, PAGE, ShownArtifact, image_kind, is_shown
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets


def find(run_dir: Path, content: JsonObject, query: Any) -> ShownArtifact:
    """Return one artifact of a step.

    Args:
        run_dir: The folder of the run.
        content: The record of the run.
        query: Its place: `task`, `side` (inputs or outputs), `name` and `index`.

    Raises:
        ApiError: There is no such artifact.
    """
    name, side, index = query.get("name", ""), query.get("side", "outputs"), query.get("index", "0")
    if side not in ("inputs", "outputs") or not index.isdecimal():
        raise invalid("expected side=inputs or side=outputs, and a number as index")
    task = next((each for each in content["tasks"] if each["path"] == query.get("task")), None)
    found: list[Artifact] = task[side]["artifacts"].get(name, []) if task else []
    if len(found) <= int(index[:6]):
        raise not_found(f"the artifact {name[:200]!r} of {query.get('task', '')[:200]!r}")
    return ShownArtifact(run_dir, Buckets.of_record(content), name, found[int(index[:6])])


def file_of(artifact: ShownArtifact, name: str, *, is_download: bool) -> Response:
    """Return a file of an artifact: as a download, or a page or an image for a frame without scripts.

    Raises:
        ApiError: There is no such file, or it is neither a page nor an image.
    """
    path = artifact.file(name)
    if path is None:
        raise not_found(f"the file {name[:200]!r} of the artifact")
    if is_download:
        return file_responses.download(path)
    kind = "text/html" if artifact.kind == PAGE and not name else image_kind(path)
    if not is_shown(path):
        raise ApiError(Status.INVALID_ARGUMENT, f"{path.name} is larger than {MAX_SHOWN_BYTES} bytes; download it")
    if not kind:
        raise ApiError(Status.INVALID_ARGUMENT, f"{path.name} is neither a page nor an image; download it")
    return file_responses.viewable_file(path, kind)
