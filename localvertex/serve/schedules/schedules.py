"""schedules: the resource and its methods. What happens when one is due stands in firing.py."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

from localvertex.serve import pipeline_jobs
from localvertex.serve.api import messages
from localvertex.serve.api.call import Call, Location
from localvertex.serve.api.errors import ApiError, Status, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.pipeline_job_view import pipeline_name
from localvertex.serve.pipeline_jobs import PipelineJobs
from localvertex.serve.schedules import firing
from localvertex.serve.schedules.clock import Clock
from localvertex.serve.schedules.cron import Cron
from localvertex.serve.schedules.firing import Schedule, time_text
from localvertex.state import run_folder

COLLECTION = "schedules"

INPUT_FIELDS = (
    "displayName", "cron", "startTime", "endTime", "maxRunCount", "maxConcurrentRunCount",
    "maxConcurrentActiveRunCount", "allowQueueing", "createPipelineJobRequest",
)  # fmt: skip

FIELDS = {
    *INPUT_FIELDS, "name", "state", "createTime", "updateTime", "nextRunTime", "lastPauseTime", "lastResumeTime",
    "startedRunCount", "catchUp", "lastScheduledRunResponse", "createNotebookExecutionJobRequest",
}  # fmt: skip


class Schedules:
    """The schedules of the API."""

    def __init__(
        self, store: Store, operations: Operations, jobs: PipelineJobs, *, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._store, self._operations, self._jobs, self._clock, self._say = store, operations, jobs, clock, say
        self.changed = threading.Event()
        """Set when somebody should look which schedule is due next."""
        jobs.on_end = self.changed.set

    def create(self, call: Call) -> dict[str, Any]:
        """A new schedule, ACTIVE at once."""
        body = messages.normalised(call.version, "Schedule", call.body)
        number, now = str(uuid4().int >> 66), self._clock.now()
        schedule = {"name": call.location.child(COLLECTION, number), "state": "ACTIVE", "startedRunCount": "0"}
        schedule |= {"createTime": time_text(now), "updateTime": time_text(now), "startTime": time_text(now)}
        schedule |= {key: body[key] for key in INPUT_FIELDS if key in body}
        check(schedule)
        schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
        self._write(schedule)
        return schedule

    def get(self, call: Call) -> dict[str, Any]:
        """One schedule."""
        return self._find(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """The schedules of a location."""
        return page(call, COLLECTION, self._store.all(COLLECTION), fields=FIELDS)

    def delete(self, call: Call) -> dict[str, Any]:
        """Removes a schedule; the runs that it started go on."""
        with self._store.lock:
            self._find(call)
            self._store.remove(COLLECTION, call.resource_id)
        return self._operations.done(call, "DeleteOperationMetadata")

    def patch(self, call: Call) -> dict[str, Any]:
        """Changes the fields that the mask names; the next run follows from the changed times."""
        body = messages.normalised(call.version, "Schedule", call.body)
        paths = [part.strip() for part in call.query.get("updateMask", "").split(",") if part.strip()]
        named = [messages.camel_case(path.split(".")[0]) for path in paths]
        if not named or set(named) - set(INPUT_FIELDS):
            raise invalid(
                f"updateMask {call.query.get('updateMask', '')[:200]!r}: some of {', '.join(INPUT_FIELDS)} expected"
            )
        with self._store.lock:
            schedule = {key: value for key, value in self._find(call).items() if key not in named}
            schedule |= {key: body[key] for key in named if key in body}
            self._refuse_completed(schedule)
            now = self._clock.now()
            schedule.setdefault("startTime", schedule["createTime"])
            check(schedule)
            if {"cron", "startTime"} & set(named):
                schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
            self._write(schedule | {"updateTime": time_text(now)})
        return self._find(call)

    def pause(self, call: Call) -> dict[str, Any]:
        """No new runs until it is resumed."""
        with self._store.lock:
            schedule, now = self._find(call), time_text(self._clock.now())
            self._refuse_completed(schedule)
            if schedule["state"] == "ACTIVE":
                self._write(schedule | {"state": "PAUSED", "lastPauseTime": now, "updateTime": now})
        return {}

    def resume(self, call: Call) -> dict[str, Any]:
        """Goes on; with `catchUp` the runs that were missed meanwhile are made up for first."""
        with self._store.lock:
            schedule, now = self._find(call), self._clock.now()
            self._refuse_completed(schedule)
            catch_up = call.body.get("catchUp", call.body.get("catch_up", False))
            if not isinstance(catch_up, bool):
                raise invalid("catchUp: true or false expected")
            if schedule["state"] == "PAUSED":
                schedule |= {"state": "ACTIVE", "lastResumeTime": time_text(now), "updateTime": time_text(now)}
                schedule["catchUp"] = catch_up
                if not catch_up:
                    schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
                self._write(schedule)
        return {}

    def fire_due(self) -> datetime | None:
        """Starts every run that is due; when the next one will be, None for no such time."""
        next_times = []
        for number in self._store.ids(COLLECTION):
            with self._store.lock:
                content = self._store.read(COLLECTION, number)
                if content is None or content["state"] != "ACTIVE":
                    continue
                schedule = Schedule(dict(content))
                waits = firing.fire(schedule, self._clock.now(), start=self._start, num_active=self._jobs.num_active)
                if schedule.content != content:
                    self._write(schedule.content, wake=False)
                if schedule.content["state"] == "ACTIVE" and not waits:
                    next_times.append(schedule.next_run)
        return min(next_times, default=None)

    def begin(self) -> None:
        """At the server's start: instants that nobody was there for are passed over, unless they are to be queued."""
        for content in self._store.all(COLLECTION):
            self._clock.begin_at(datetime.fromisoformat(content["updateTime"]))
        for content in self._store.all(COLLECTION):
            schedule = Schedule(content)
            if content["state"] == "ACTIVE" and not schedule.may_wait and schedule.next_run <= self._clock.now():
                first = firing.first_instant(schedule, self._clock.now())
                self._write(content | {"nextRunTime": time_text(first)}, wake=False)

    def real_seconds_until(self, moment: datetime) -> float:
        """How long to wait for a moment of the schedules' clock."""
        return self._clock.real_seconds_until(moment)

    def _start(self, schedule: Schedule, instant: datetime) -> str:
        request = schedule.content["createPipelineJobRequest"]
        _, project, _, region = request["parent"].split("/")
        location = Location(project=project, region=region)
        job_id = scheduled_job_id(schedule.content, instant)
        try:
            job = self._jobs.start(
                location,
                request["pipelineJob"],
                job_id,
                schedule_name=schedule.content["name"],
                schedule_time=time_text(instant),
            )
        except ApiError as error:
            if error.status is Status.ALREADY_EXISTS:
                # The server was killed after it had started the run and before it had noted that.
                return f"OK: {location.child(pipeline_jobs.COLLECTION, job_id)}"
            self._say(f"schedule {schedule.content['displayName']}: run of {time_text(instant)} refused: {error}")
            return f"{error.status.name}: {error}"
        self._say(f"schedule {schedule.content['displayName']}: run of {time_text(instant)} is {job['name']}")
        return f"OK: {job['name']}"

    def _write(self, schedule: dict[str, Any], *, wake: bool = True) -> None:
        self._store.write(COLLECTION, schedule["name"].rpartition("/")[2], schedule)
        if wake:
            self.changed.set()

    def _find(self, call: Call) -> dict[str, Any]:
        name = call.location.child(COLLECTION, call.resource_id)
        schedule = self._store.read(COLLECTION, call.resource_id)
        if schedule is None or schedule["name"] != name:
            raise not_found(name)
        return schedule

    @staticmethod
    def _refuse_completed(schedule: dict[str, Any]) -> None:
        if schedule["state"] == "COMPLETED":
            raise ApiError(Status.FAILED_PRECONDITION, f"{schedule['name']} is COMPLETED; create a new one")


def scheduled_job_id(schedule: dict[str, Any], instant: datetime) -> str:
    """The id of the run of one instant, the same whenever it is asked for: no instant is run twice."""
    spec = schedule["createPipelineJobRequest"]["pipelineJob"]["pipelineSpec"]
    return run_folder.readable_id(pipeline_name(spec), f"{instant:%Y%m%d%H%M%S}-{schedule['name'][-6:]}")


def check(schedule: dict[str, Any]) -> None:
    """Refuses a schedule that could not do what it says.

    Raises:
        ApiError: in one line.
    """
    if not 1 <= len(schedule.get("displayName", "")) <= 128:
        raise invalid("displayName: 1 to 128 characters expected")
    if "cron" not in schedule:
        raise invalid("cron is missing, e.g. 'TZ=Europe/Berlin 0 3 * * 1'")
    Cron.parse(schedule["cron"])
    request = schedule.get("createPipelineJobRequest", {})
    if not request.get("pipelineJob", {}).get("pipelineSpec"):
        raise invalid(
            "createPipelineJobRequest.pipelineJob.pipelineSpec is missing; only pipeline jobs are scheduled here"
        )
    parts = request.get("parent", "").split("/")
    if [len(parts), *parts[::2]] != [4, "projects", "locations"]:
        raise invalid("createPipelineJobRequest.parent: projects/P/locations/L expected")
    if int(schedule.get("maxConcurrentRunCount", 0)) < 1:
        raise invalid("maxConcurrentRunCount: 1 or more expected")
    for name in ("maxRunCount", "maxConcurrentActiveRunCount"):
        if int(schedule.get(name, 1)) < 1:
            raise invalid(f"{name}: 1 or more expected; leave it out for no limit")
    if "endTime" in schedule and firing.time_of(schedule["endTime"]) <= firing.time_of(schedule["startTime"]):
        raise invalid("endTime: later than the start expected")
