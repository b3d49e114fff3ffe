"""The routes of one run: its record, its logs, and the commands and artifacts of its steps."""

from typing import Any

from starlette.responses import Response

from localvertex.serve.console.local_route import LocalCall, local_route
from localvertex.serve.console.runs import commands, logs
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

    @local_route("GET", "/local/runs/{id:id}")
    def record(self, call: LocalCall) -> dict[str, Any]:
        """Return the record of a run."""
        return self._records.answer(find_run(self._work_dir, call.path["id"]))

    @local_route("GET", "/local/runs/{id:id}/log")
    def log(self, call: LocalCall) -> dict[str, Any]:
        """Return the logs of a step, and a part of one of them."""
        asked = {name: call.query.get(name, "") for name in ("task", "offset", "before")}
        run_dir = find_run(self._work_dir, call.path["id"])
        return logs.answer(run_dir, asked["task"], call.query.get("file", ""), asked["offset"], asked["before"])

    @local_route("GET", "/local/runs/{id:id}/command")
    def command(self, call: LocalCall) -> dict[str, Any]:
        """Return the resolved command of a step."""
        run_dir = find_run(self._work_dir, call.path["id"])
        return commands.of_step(run_dir, self._records.content(run_dir), call.query.get("task", ""))

    @local_route("GET", "/local/runs/{id:id}/artifact")
    def artifact(self, call: LocalCall) -> dict[str, Any]:
        """Return what is shown of an artifact."""
        return self._artifact(call).view()

    @local_route("GET", "/local/runs/{id:id}/artifact/file")
    def artifact_file(self, call: LocalCall) -> Response:
        """Return a file of an artifact."""
        return self._artifact(call).file(call.query.get("file", ""), is_download="download" in call.query)

    def _artifact(self, call: LocalCall) -> ArtifactOf:
        run_dir = find_run(self._work_dir, call.path["id"])
        return ArtifactOf(run_dir, self._records.content(run_dir), call.query)
