"""The runs of schedules: looked for by the instant at which they are due, and started."""

from datetime import datetime
from typing import Any

from localvertex._base.lines import WriteLine
from localvertex.api.pipeline_jobs.pipeline_jobs import COLLECTION, PipelineJobs
from localvertex.api.pipeline_jobs.view import pipeline_name
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError
from localvertex.api.schedules.firing import Schedule, time_text
from localvertex.store import run_folder


class ScheduledRuns:
    """Pipeline jobs by schedule and instant."""

    def __init__(self, jobs: PipelineJobs, log: WriteLine) -> None:
        self._jobs, self._log = jobs, log

    def exists(self, schedule: Schedule, instant: datetime) -> str:
        """Return the name of the run of an instant; empty when it was not started."""
        job_id = _job_id(schedule.content, instant)
        is_started = self._jobs.was_begun(job_id, schedule.content["name"]) and self._jobs.is_started(job_id)
        return location_of(_request(schedule)).child(COLLECTION, job_id) if is_started else ""

    def was_begun(self, schedule: Schedule, instant: datetime) -> bool:
        """Return whether the run of an instant was already started, even if the server was killed meanwhile."""
        return self._jobs.was_begun(_job_id(schedule.content, instant), schedule.content["name"])

    def num_active(self, schedule: Schedule) -> int:
        """Count the runs that have not ended."""
        return self._jobs.num_active(schedule.content["name"])

    def start(self, schedule: Schedule, instant: datetime) -> tuple[str, str]:
        """Start a run; return its name, or else an empty one and why it was refused.

        Raises:
            OSError: It could not be started, e.g. because the disk is full.
        """
        request, title = _request(schedule), f"schedule {schedule.content['displayName']}: run of {time_text(instant)}"
        try:
            job = self._jobs.start(
                location_of(request),
                request["pipelineJob"],
                _job_id(schedule.content, instant),
                schedule_name=schedule.content["name"],
                schedule_time=time_text(instant),
            )
        except OSError:
            raise
        except Exception as error:  # a defect must not keep the schedule from its next instant
            status = error.status.name if isinstance(error, ApiError) else f"INTERNAL: {type(error).__name__}"
            self._log(f"{title} refused: {status}: {error}")
            return "", f"{status}: {error}"
        self._log(f"{title} is {job['name']}")
        return str(job["name"]), ""


def location_of(request: dict[str, Any]) -> Location:
    """Return the location of a CreatePipelineJobRequest whose parent has been checked."""
    _, project, _, region = request["parent"].split("/")
    return Location(project=project, region=region)


def _request(schedule: Schedule) -> dict[str, Any]:
    request: dict[str, Any] = schedule.content["createPipelineJobRequest"]
    return request


def _job_id(schedule: dict[str, Any], instant: datetime) -> str:
    """Derive the id of an instant's run from the instant, so that no instant runs twice."""
    spec = schedule["createPipelineJobRequest"]["pipelineJob"]["pipelineSpec"]
    return run_folder.readable_id(pipeline_name(spec), f"{instant:%Y%m%d%H%M%S}-{schedule['name'][-6:]}")
