"""Retry, stop and delete, for every run of the work folder."""

from localvertex._base.json_object import JsonObject
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs import note
from localvertex.console.runs.folders import find_run
from localvertex.store import record

_ELSEWHERE = (
    "{run_id} was started in a terminal; only that process can stop it: press Ctrl-C there, once to stop gracefully, "
    "twice to stop at once"
)

_LEFT = "the server that ran {run_id} was killed; the last processes of the run end by themselves within the grace time"

_STARTING = "{run_id} is being started; stop it when it is running"


class RunActions:
    """Actions behind the buttons of a run."""

    def __init__(self, jobs: PipelineJobs) -> None:
        self._jobs = jobs

    @local_route("POST", "/local/runs/{id:id}:retry")
    def _retry(self, call: LocalCall) -> JsonObject:
        """Resume a run; its finished steps are not run again."""
        self._jobs.retry(call.path["id"])
        return {}

    @local_route("POST", "/local/runs/{id:id}:stop")
    def _stop(self, call: LocalCall) -> JsonObject:
        """Stop a run, with `at_once` without grace time for its processes; one that has ended is unchanged."""
        run_id, at_once = call.path["id"], call.body.get("at_once", False)
        if not isinstance(at_once, bool):
            raise invalid(f"at_once: expected true or false, found {str(at_once)[:40]!r}")
        run_dir = find_run(self._jobs.work_dir, run_id)
        if not self._jobs.stop(run_id, at_once=at_once) and record.is_running(run_dir):
            text = _STARTING if self._jobs.is_here(run_id) else _LEFT if self._jobs.is_left(run_id) else _ELSEWHERE
            raise ApiError(Status.FAILED_PRECONDITION, text.format(run_id=run_id))
        return {}

    @local_route("POST", "/local/runs/{id:id}:note")
    def note(self, call: LocalCall) -> JsonObject:
        """Keep a `name` and a `note` of a run; two empty texts remove them."""
        note.write(find_run(self._jobs.work_dir, call.path["id"]), call.body)
        return {}

    @local_route("DELETE", "/local/runs/{id:id}")
    def _delete(self, call: LocalCall) -> JsonObject:
        """Delete a run that has ended, with all its files."""
        self._jobs.remove(call.path["id"])
        return {}
