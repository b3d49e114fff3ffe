"""batchCancel and batchDelete of pipelineJobs: all of the named jobs, or none."""

from dataclasses import replace
from typing import Any

from localvertex.api.pipeline_jobs.pipeline_jobs import COLLECTION, PipelineJobs
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.api.rest.operations import TYPES, Operations
from localvertex.api.rest.store import Store
from localvertex.store import record, run_folder

_MAX_JOBS = 32


class PipelineJobBatches:
    """The methods of pipelineJobs that name several jobs."""

    def __init__(self, store: Store, operations: Operations, jobs: PipelineJobs) -> None:
        self._store, self._operations, self._jobs = store, operations, jobs

    def cancel(self, call: Call) -> dict[str, Any]:
        """Ask the jobs to stop; those that have ended are unchanged."""
        with self._store.lock:
            calls = self._calls(call, "BatchCancelPipelineJobsRequest")
            for each in calls:
                self._jobs.cancel(each)
            found = [self._jobs.get(each) for each in calls]
        return self._is_done(call, "BatchCancelPipelineJobsOperationMetadata", "BatchCancelPipelineJobsResponse", found)

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete the jobs, of which none may be running."""
        for each in self._calls(call, "BatchDeletePipelineJobsRequest"):
            run_folder.wait_for_last_processes(self._store.folder.parent / each.resource_id)
        with self._store.lock:
            calls = self._calls(call, "BatchDeletePipelineJobsRequest")
            work_dir = self._store.folder.parent
            running = [each.resource_id for each in calls if record.is_running(work_dir / each.resource_id)]
            if running:
                text = f"{', '.join(running)}: running; cancel first. No job was deleted"
                raise ApiError(Status.FAILED_PRECONDITION, text)
            found = [self._jobs.get(each) for each in calls]
            for each in calls:
                self._forget(each, self._jobs.delete(each))
        return self._is_done(call, "DeleteOperationMetadata", "BatchDeletePipelineJobsResponse", found)

    def _calls(self, call: Call, request: str) -> list[Call]:
        """Return a call for each named job.

        Raises:
            ApiError: There are too many or no names, or a job does not exist.
        """
        names = list(dict.fromkeys(messages.normalise(call.version, request, call.body).get("names", [])))
        if not 1 <= len(names) <= _MAX_JOBS:
            raise invalid(f"names: expected 1 to {_MAX_JOBS} pipeline jobs, found {len(names)}")
        prefix = call.location.child(COLLECTION, "")
        for name in names:
            if not name.startswith(prefix):
                raise invalid(f"names: expected {prefix}JOB, found {name[:300]!r}")
        calls = [replace(call, resource_id=name.removeprefix(prefix), body={}) for name in names]
        for each in calls:
            self._jobs.get(each)
        return calls

    def _forget(self, call: Call, operation: dict[str, Any]) -> None:
        """Remove the operation of one deletion; the batch has its own."""
        self._operations.delete(replace(call, resource_id=operation["name"].rpartition("/")[2]))

    def _is_done(self, call: Call, metadata: str, response: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
        content = {"@type": f"{TYPES}.{call.version}.{response}", "pipelineJobs": jobs}
        return self._operations.finished_operation(call, metadata, content)
