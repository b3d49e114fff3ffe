"""The routes of one run: its record, its logs, and the artifacts of its steps."""

from pathlib import Path
from typing import Any

from starlette.responses import Response

from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs import artifacts, log_search, logs
from localvertex.console.runs.folders import find_run
from localvertex.console.runs.record import WatchedRuns
from localvertex.show.view.artifacts import ShownArtifact


class RunRoutes:
    """The routes of one run.

    Args:
        records: The runs.
    """

    def __init__(self, records: WatchedRuns) -> None:
        self._records, self._work_dir = records, records.work_dir

    @local_route("GET", "/local/runs/{id:id}")
    def record(self, call: LocalCall) -> dict[str, Any]:
        """Return the record of a run."""
        return self._records.answer(find_run(self._work_dir, call.path["id"]))

    @local_route("GET", "/local/runs/{id:id}/log")
    def log(self, call: LocalCall) -> dict[str, Any]:
        """Return the logs of a step, and a part of one of them."""
        return logs.answer(*self._step(call), call.query)

    @local_route("GET", "/local/runs/{id:id}/log/search")
    def log_search(self, call: LocalCall) -> dict[str, Any]:
        """Return where a text is in a log."""
        return log_search.answer(*self._step(call), call.query)

    @local_route("GET", "/local/runs/{id:id}/log/file")
    def log_file(self, call: LocalCall) -> Response:
        """Return a whole log, to save."""
        return logs.download(*self._step(call), call.query)

    @local_route("GET", "/local/runs/{id:id}/artifact")
    def artifact(self, call: LocalCall) -> dict[str, Any]:
        """Return what is shown of an artifact."""
        return self._artifact(call).view()

    @local_route("GET", "/local/runs/{id:id}/artifact/file")
    def artifact_file(self, call: LocalCall) -> Response:
        """Return a file of an artifact."""
        name = call.query.get("file", "")
        return artifacts.file_of(self._artifact(call), name, is_download="download" in call.query)

    def _step(self, call: LocalCall) -> tuple[Path, str]:
        """Return the folder of the run and the path of the step in a call."""
        return find_run(self._work_dir, call.path["id"]), call.query.get("task", "")

    def _artifact(self, call: LocalCall) -> ShownArtifact:
        run_dir = find_run(self._work_dir, call.path["id"])
        return artifacts.find(run_dir, self._records.content(run_dir), call.query)
