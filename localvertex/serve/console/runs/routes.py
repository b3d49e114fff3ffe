"""The routes of one run: its record, its logs, and the commands and artifacts of its steps."""

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from localvertex.serve.console.local_route import LocalCall, local_route
from localvertex.serve.console.runs import commands, log_search, logs
from localvertex.serve.console.runs.artifacts import ArtifactOf
from localvertex.serve.console.runs.folders import find_run
from localvertex.serve.console.runs.record import Records


class RunRoutes:
    """The routes of one run.

    Args:
        records: The runs.
    """

    def __init__(self, records: Records) -> None:
        self._records, self._work_dir = records, records.work_dir

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        return [
            local_route("GET", "/local/runs/{id:id}", self.record),
            local_route("GET", "/local/runs/{id:id}/log", self.log),
            local_route("GET", "/local/runs/{id:id}/log/search", self.log_search),
            local_route("GET", "/local/runs/{id:id}/log/file", self.log_file),
            local_route("GET", "/local/runs/{id:id}/command", self.command),
            local_route("GET", "/local/runs/{id:id}/artifact", self.artifact),
            local_route("GET", "/local/runs/{id:id}/artifact/file", self.artifact_file),
        ]

    def record(self, call: LocalCall) -> dict[str, Any]:
        """Return the record of a run."""
        return self._records.answer(find_run(self._work_dir, call.path["id"]))

    def log(self, call: LocalCall) -> dict[str, Any]:
        """Return the logs of a step, and a part of one of them."""
        return logs.answer(*self._step(call), call.query)

    def log_search(self, call: LocalCall) -> dict[str, Any]:
        """Return where a text is in a log."""
        return log_search.answer(*self._step(call), call.query)

    def log_file(self, call: LocalCall) -> Response:
        """Return a log to save."""
        return logs.download(*self._step(call), call.query)

    def command(self, call: LocalCall) -> dict[str, Any]:
        """Return the resolved command of a step."""
        run_dir = find_run(self._work_dir, call.path["id"])
        return commands.of_step(run_dir, self._records.content(run_dir), call.query.get("task", ""))

    def artifact(self, call: LocalCall) -> dict[str, Any]:
        """Return what is shown of an artifact."""
        return self._artifact(call).view()

    def artifact_file(self, call: LocalCall) -> Response:
        """Return a file of an artifact."""
        return self._artifact(call).file(call.query.get("file", ""), is_download="download" in call.query)

    def _step(self, call: LocalCall) -> tuple[Path, str]:
        """Return the folder of a run, and the path of the step that is asked for."""
        return find_run(self._work_dir, call.path["id"]), call.query.get("task", "")

    def _artifact(self, call: LocalCall) -> ArtifactOf:
        run_dir = find_run(self._work_dir, call.path["id"])
        return ArtifactOf(run_dir, self._records.content(run_dir), call.query)
