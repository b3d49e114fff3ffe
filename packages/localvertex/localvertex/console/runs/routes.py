"""The routes of one run: its record, its report, its logs, and the artifacts of its steps."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.console import file_responses
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.folders import find_run, step_folder
from localvertex.console.runs.record import WatchedRuns
from localvertex.show.view import logs, mistakes
from localvertex.show.view.artifacts import MAX_SHOWN_BYTES, PAGE, ShownArtifact, image_kind, is_shown
from localvertex.store import record
from localvertex.store.executor_files import LOG
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets


class RunRoutes:
    """The routes of one run, and the routes of logs, which custom jobs of the API share.

    Args:
        records: The runs.
        custom_jobs: The custom jobs of the API.
    """

    def __init__(self, records: WatchedRuns, custom_jobs: CustomJobs) -> None:
        self._records, self._work_dir, self._custom_jobs = records, records.work_dir, custom_jobs

    @local_route("GET", "/local/runs/{id:id}")
    def run(self, call: LocalCall) -> JsonObject:
        """Return the record of a run."""
        return self._records.answer(find_run(self._work_dir, call.path["id"]))

    @local_route("GET", "/local/runs/{id:id}/report")
    def report(self, call: LocalCall) -> Response:
        """Return the view of a run as one file, to save."""
        page = find_run(self._work_dir, call.path["id"]) / record.PAGE
        if not page.is_file():
            raise not_found(f"the report of {call.path['id']}")
        return file_responses.download(page)

    @local_route("GET", "/local/{kind}/{id:id}/log")
    def log(self, call: LocalCall) -> JsonObject:
        """Return the logs of a step, and a part of one of them."""
        return log_of_step(*self._step(call), call.query)

    @local_route("GET", "/local/{kind}/{id:id}/log/file")
    def log_file(self, call: LocalCall) -> Response:
        """Return a whole log, to save."""
        return whole_log(*self._step(call), call.query)

    @local_route("GET", "/local/runs/{id:id}/artifact")
    def artifact(self, call: LocalCall) -> JsonObject:
        """Return the view of an artifact."""
        return self._artifact(call).view()

    @local_route("GET", "/local/runs/{id:id}/artifact/file")
    def artifact_file(self, call: LocalCall) -> Response:
        """Return a file of an artifact."""
        name = call.query.get("file", "")
        return file_of_artifact(self._artifact(call), name, is_download="download" in call.query)

    @local_route("GET", "/local/runs/{id:id}/mistakes")
    def mistakes(self, call: LocalCall) -> JsonObject:
        """Return the worst mistakes in the predictions of a step."""
        run_dir = find_run(self._work_dir, call.path["id"])
        content = self._records.content(run_dir)
        return {"mistakes": mistakes.of_step(run_dir, content, call.query.get("task", ""))}

    def _step(self, call: LocalCall) -> tuple[Path, str]:
        """Return the folder of the run and the path of the step in a call.

        Raises:
            ApiError: There is no such run or job.
        """
        if call.path["kind"] == "jobs":
            # A job of the API has the logs of a step, in a folder named by its number.
            folder = self._custom_jobs.find(call.path["id"])[1]
            return folder.parent, folder.name
        if call.path["kind"] != "runs":
            raise not_found(f"{call.path['kind'][:200]!r}")
        return find_run(self._work_dir, call.path["id"]), call.query.get("task", "")

    def _artifact(self, call: LocalCall) -> ShownArtifact:
        run_dir = find_run(self._work_dir, call.path["id"])
        return find_artifact(run_dir, self._records.content(run_dir), call.query)


def find_artifact(run_dir: Path, content: JsonObject, query: Any) -> ShownArtifact:
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


def file_of_artifact(artifact: ShownArtifact, name: str, *, is_download: bool) -> Response:
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


def log_of_step(run_dir: Path, task: str, query: Mapping[str, str]) -> JsonObject:
    """Return the logs of a step and a part of one of them, by default of the first.

    Raises:
        ApiError: The step or an offset is wrong.
    """
    folder = step_folder(run_dir, task)
    names = logs.files(run_dir, task)
    chosen = query.get("file") or next(iter(names), LOG)
    places: JsonObject = {name: _number(name, query.get(name, "")) for name in ("offset", "before", "around")}
    found = logs.piece(folder / chosen, **places) if chosen in names else None
    return {"files": names, "file": chosen, **asdict(found or logs.EMPTY)}


def whole_log(run_dir: Path, task: str, query: Mapping[str, str]) -> Response:
    """Return a log as a file that the browser saves.

    Raises:
        ApiError: There is no such log.
    """
    folder = step_folder(run_dir, task)
    names = logs.files(run_dir, task)
    chosen = query.get("file") or next(iter(names), LOG)
    if chosen not in names:
        raise not_found(f"the log {chosen[:200]!r} of {task[:200]!r}")
    return file_responses.download(folder / chosen)


def _number(name: str, text: str) -> int | None:
    """Return an offset of a query; None without it.

    Raises:
        ApiError: It is not a number.
    """
    if text and not (text.isdecimal() and len(text) < 16):
        raise invalid(f"{name}={text[:100]}: expected a number of bytes")
    return int(text) if text else None
