"""The routes of one run: its record, its report, its logs, and the artifacts of its steps."""

from pathlib import Path

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import not_found
from localvertex.console import file_responses
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs import artifacts, logs
from localvertex.console.runs.folders import find_run
from localvertex.console.runs.record import WatchedRuns
from localvertex.show.view.artifacts import ShownArtifact
from localvertex.store import record


class RunRoutes:
    """The routes of one run, and those of logs, which custom jobs of the API have, too.

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
        return logs.answer(*self._step(call), call.query)

    @local_route("GET", "/local/{kind}/{id:id}/log/file")
    def log_file(self, call: LocalCall) -> Response:
        """Return a whole log, to save."""
        return logs.download(*self._step(call), call.query)

    @local_route("GET", "/local/runs/{id:id}/artifact")
    def artifact(self, call: LocalCall) -> JsonObject:
        """Return what is shown of an artifact."""
        return self._artifact(call).view()

    @local_route("GET", "/local/runs/{id:id}/artifact/file")
    def artifact_file(self, call: LocalCall) -> Response:
        """Return a file of an artifact."""
        name = call.query.get("file", "")
        return artifacts.file_of(self._artifact(call), name, is_download="download" in call.query)

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
        return artifacts.find(run_dir, self._records.content(run_dir), call.query)
