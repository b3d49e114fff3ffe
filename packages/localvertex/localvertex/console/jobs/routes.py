"""The routes of custom jobs, of a run's steps and of the API."""

from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.folders import find_run, step_folder
from localvertex.console.runs.record import WatchedRuns
from localvertex.jobs.faults import requests
from localvertex.jobs.faults.requests import FaultRefused
from localvertex.jobs.status import FINAL_STATES, StatusFile
from localvertex.show.view import shape
from localvertex.show.view.live import LiveJob
from localvertex.store.task import State


class JobRoutes:
    """The routes of custom jobs.

    Args:
        records: The runs.
        custom_jobs: The custom jobs of the API.
    """

    def __init__(self, records: WatchedRuns, custom_jobs: CustomJobs) -> None:
        self._records, self._custom_jobs = records, custom_jobs

    @local_route("GET", "/local/runs/{id:id}/job")
    def of_run(self, call: LocalCall) -> JsonObject:
        """Return the job of a step, with its curves."""
        task = call.query.get("task", "")
        _, status, is_running = self._of_run(call.path["id"], task)
        return _answer(LiveJob(task), status, is_running=is_running)

    @local_route("GET", "/local/jobs/{id:id}")
    def of_api(self, call: LocalCall) -> JsonObject:
        """Return a job of the API, with its curves."""
        job, folder = self._custom_jobs.find(call.path["id"])
        return {"job": job} | _answer(LiveJob(), StatusFile.read(folder), is_running=is_running(job))

    @local_route("POST", "/local/{kind}/{id:id}:fault")
    def fault(self, call: LocalCall) -> JsonObject:
        """Ask the job of a step, or a job of the API, for a fault."""
        kind, number = call.path["kind"], call.path["id"]
        if kind == "jobs":
            job, folder = self._custom_jobs.find(number)
            status, is_alive = StatusFile.read(folder), is_running(job)
        elif kind == "runs":
            task = call.body.get("task")
            folder, status, is_alive = self._of_run(number, task if isinstance(task, str) else "")
        else:
            raise not_found(f"{kind[:200]!r}")
        if not is_alive:
            raise _refuse(f"the {kind[:-1]} {number} is not running")
        return _request(folder, status, call)

    def _of_run(self, run_id: str, task: str) -> tuple[Path, JsonObject, bool]:
        """Return the folder of a step, the status of its job, and whether the run is running."""
        run_dir = find_run(self._records.work_dir, run_id)
        folder = step_folder(run_dir, task)
        reading = self._records.watch(run_dir).read()
        entries = [each for each in reading.content.get("tasks", []) if each["path"] == task]
        if not entries or not entries[0].get("custom_job"):
            raise not_found(f"a custom job of the step {task[:200]!r} of {run_id}")
        return folder, entries[0]["custom_job"], not State(reading.content["state"]).is_final


def is_running(job: JsonObject) -> bool:
    """Return whether a job of the API has not ended."""
    return job["state"] not in FINAL_STATES


def _answer(job: LiveJob, status: JsonObject | None, *, is_running: bool) -> JsonObject:
    """Return everything that a stream would begin with."""
    messages = job.poll(status, is_running=is_running)
    found = next((content for name, content in messages if name == "job"), {})
    return found | {"steps": [content for name, content in messages if name == "steps"]}


def _request(folder: Path, status: JsonObject | None, call: LocalCall) -> JsonObject:
    """Write the request that a body describes."""
    try:
        if status and not shape.is_custom_job(status):
            raise _refuse("the status of the job is damaged")
        requests.write(folder, status or {}, {name: value for name, value in call.body.items() if name != "task"})
    except FaultRefused as error:
        raise ApiError(Status.INVALID_ARGUMENT if error.is_wrong else Status.FAILED_PRECONDITION, str(error)) from None
    return {}


def _refuse(text: str) -> ApiError:
    return ApiError(Status.FAILED_PRECONDITION, text)
