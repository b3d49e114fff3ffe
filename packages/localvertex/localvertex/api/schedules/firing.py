"""Act on an instant of a schedule's cron: start a run, skip it, or queue it.

The resource itself contains everything that is needed after a restart. `nextRunTime` is the next instant that has not
been handled; while a run waits for its turn it stays in the past, as the API describes. The resource is written after
each instant, so that at most the run of `nextRunTime` was started without being noted.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.api.pipeline_jobs.pipeline_jobs import COLLECTION, PipelineJobs
from localvertex.api.pipeline_jobs.view import pipeline_name
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError
from localvertex.api.schedules.cron import Cron
from localvertex.store import run_folder


def time_of(text: str) -> datetime:
    """Read a time of the API."""
    return datetime.fromisoformat(text)


def time_text(moment: datetime) -> str:
    """Format a time as the API does."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Schedule:
    """A schedule whose resource is `content`, which firing changes."""

    content: JsonObject

    @property
    def cron(self) -> Cron:
        """The instants at which it fires."""
        return Cron.parse(self.content["cron"])

    @property
    def next_run(self) -> datetime:
        """The next instant that has not been handled."""
        return time_of(self.content["nextRunTime"])

    @property
    def limit(self) -> int:
        """The maximum number of concurrent runs."""
        names = ("maxConcurrentRunCount", "maxConcurrentActiveRunCount")
        return min(int(self.content[name]) for name in names if name in self.content)

    @property
    def may_wait(self) -> bool:
        """Whether the next run waits for its turn; otherwise it is skipped when the limit is reached."""
        if self.content.get("allowQueueing", False):
            return True
        resumed = self.content.get("lastResumeTime", "")
        return bool(self.content.get("catchUp") and resumed and self.next_run <= time_of(resumed))

    @property
    def is_over(self) -> bool:
        """Whether no further run will start."""
        if int(self.content["startedRunCount"]) >= int(self.content.get("maxRunCount", 2**62)):
            return True
        return "endTime" in self.content and self.next_run > time_of(self.content["endTime"])


def first_instant(schedule: Schedule, now: datetime) -> datetime:
    """Return the first instant after now that is not before the start time."""
    start = time_of(schedule.content["startTime"])
    # An instant equal to the start time counts.
    return schedule.cron.after(now if start <= now else start - timedelta(microseconds=1))


class FiringReport(Enum):
    """Result of `fire`."""

    IDLE = auto()
    """The next instant is in the future."""
    WAITS = auto()
    """A run waits until another run ends."""
    HANDLED = auto()
    """One instant was handled; the content has changed."""


class ScheduledRuns:
    """Pipeline jobs by schedule and instant."""

    def __init__(self, jobs: PipelineJobs, log: WriteLine) -> None:
        self._jobs, self._log = jobs, log

    def exists(self, schedule: Schedule, instant: datetime) -> str:
        """Return the name of the run of an instant; empty when it was not started."""
        job_id = _job_id(schedule.content, instant)
        is_started = self.was_begun(schedule, instant) and self._jobs.is_started(job_id)
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


def settle(schedule: Schedule, now: datetime, runs: ScheduledRuns) -> bool:
    """Note the run of the next instant if it exists: the server may have ended after it had started the run.

    Returns:
        Whether it exists; the content has changed.
    """
    name = "" if "nextRunTime" not in schedule.content else runs.exists(schedule, schedule.next_run)
    if name:
        _note(schedule, now, name)
    return bool(name)


def fire(schedule: Schedule, now: datetime, runs: ScheduledRuns) -> FiringReport:
    """Handle the next instant if it is due, or end the schedule after its last one.

    Args:
        schedule: The schedule, whose content changes.
        now: The current time.
        runs: Looks at runs and starts them.

    Raises:
        OSError: The run could not be started, e.g. because the disk is full; the content is unchanged.
    """
    if schedule.is_over:
        schedule.content["state"] = "COMPLETED"
        schedule.content.pop("nextRunTime")
    elif schedule.next_run > now:
        return FiringReport.IDLE
    elif not settle(schedule, now, runs):
        reason = why_full(schedule, runs)
        if reason and schedule.may_wait:
            return FiringReport.WAITS
        _note(schedule, now, *(("", f"SKIPPED: {reason}") if reason else runs.start(schedule, schedule.next_run)))
    return FiringReport.HANDLED


def why_full(schedule: Schedule, runs: ScheduledRuns) -> str:
    """Return why another run has to wait; empty when it need not."""
    is_full = runs.num_active(schedule) >= schedule.limit
    return f"the limit of {schedule.limit} concurrent runs is reached" if is_full else ""


def note_failure(schedule: Schedule, reason: str) -> JsonObject:
    """Return the content with the reason for which the next instant could not be handled; it is tried again."""
    instant = schedule.content.get("nextRunTime", "")
    return schedule.content | {"lastScheduledRunResponse": {"scheduledRunTime": instant, "runResponse": reason}}


def _note(schedule: Schedule, now: datetime, name: str, reason: str = "") -> None:
    content, instant = schedule.content, schedule.next_run
    following = schedule.cron.after(instant)
    content["startedRunCount"] = str(int(content["startedRunCount"]) + bool(name))
    response = f"OK: {name}" if name else reason
    content["lastScheduledRunResponse"] = {"scheduledRunTime": time_text(instant), "runResponse": response}
    content["nextRunTime"], content["updateTime"] = time_text(following), time_text(now)


def location_of(request: JsonObject) -> Location:
    """Return the location of a CreatePipelineJobRequest whose parent has been checked."""
    _, project, _, region = request["parent"].split("/")
    return Location(project=project, region=region)


def _request(schedule: Schedule) -> JsonObject:
    request: JsonObject = schedule.content["createPipelineJobRequest"]
    return request


def _job_id(schedule: JsonObject, instant: datetime) -> str:
    """Derive the id of an instant's run from the instant, so that no instant runs twice."""
    spec = schedule["createPipelineJobRequest"]["pipelineJob"]["pipelineSpec"]
    return run_folder.readable_id(pipeline_name(spec), f"{instant:%Y%m%d%H%M%S}-{schedule['name'][-6:]}")
