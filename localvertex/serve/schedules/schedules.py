"""schedules: the resource and its methods; firing.py has what happens when one is due."""

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
from localvertex.serve.schedules.clock import Clock, Waker
from localvertex.serve.schedules.cron import Cron
from localvertex.serve.schedules.firing import Schedule, time_text
from localvertex.state import run_folder
from userinput.spelling import camel

COLLECTION = "schedules"

_INPUT_FIELDS = (
    "displayName",
    "cron",
    "startTime",
    "endTime",
    "maxRunCount",
    "maxConcurrentRunCount",
    "maxConcurrentActiveRunCount",
    "allowQueueing",
    "createPipelineJobRequest",
)
"""Fields that a user may set; the service sets the others."""


class Schedules:
    """The schedules of the API."""

    def __init__(
        self, store: Store, operations: Operations, jobs: PipelineJobs, *, clock: Clock, log: Callable[[str], None]
    ) -> None:
        self._store, self._operations, self._jobs, self._clock, self._log = store, operations, jobs, clock, log
        self._waker = Waker(clock, self.fire_due)
        jobs.on_end = self._waker.wake

    def create(self, call: Call) -> dict[str, Any]:
        """Create a schedule, which is ACTIVE at once."""
        body = messages.checked(call.version, "Schedule", call.body)
        number, now = str(uuid4().int >> 66), self._clock.now()
        schedule = {"name": call.location.child(COLLECTION, number), "state": "ACTIVE", "startedRunCount": "0"}
        schedule |= {"createTime": time_text(now), "updateTime": time_text(now), "startTime": time_text(now)}
        schedule |= {key: body[key] for key in _INPUT_FIELDS if key in body}
        check(schedule)
        schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
        self._write(schedule)
        return schedule

    def get(self, call: Call) -> dict[str, Any]:
        """Return one schedule."""
        return self._find(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the schedules of a location."""
        fields = messages.field_names(call.version, "Schedule")
        return page(call, COLLECTION, self._store.all(COLLECTION), fields=fields)

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a schedule; the runs that it started continue."""
        with self._store.lock:
            self._find(call)
            self._store.remove(COLLECTION, call.resource_id)
        return self._operations.done(call, "DeleteOperationMetadata")

    def patch(self, call: Call) -> dict[str, Any]:
        """Change the fields that the mask names; the next run follows from the changed times."""
        body = messages.checked(call.version, "Schedule", call.body)
        paths = [part.strip() for part in call.query.get("updateMask", "").split(",") if part.strip()]
        named = [camel(path.split(".")[0]) for path in paths]
        if not named or set(named) - set(_INPUT_FIELDS):
            raise invalid(
                f"updateMask {call.query.get('updateMask', '')[:200]!r}: expected some of {', '.join(_INPUT_FIELDS)}"
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
        """Start no new runs until the schedule is resumed."""
        with self._store.lock:
            schedule, now = self._find(call), time_text(self._clock.now())
            self._refuse_completed(schedule)
            if schedule["state"] == "ACTIVE":
                self._write(schedule | {"state": "PAUSED", "lastPauseTime": now, "updateTime": now})
        return {}

    def resume(self, call: Call) -> dict[str, Any]:
        """Start runs again; with `catchUp` the missed ones come first."""
        with self._store.lock:
            schedule, now = self._find(call), self._clock.now()
            self._refuse_completed(schedule)
            catch_up = call.body.get("catchUp", call.body.get("catch_up", False))
            if not isinstance(catch_up, bool):
                raise invalid("catchUp: expected true or false")
            if schedule["state"] == "PAUSED":
                schedule |= {"state": "ACTIVE", "lastResumeTime": time_text(now), "updateTime": time_text(now)}
                schedule["catchUp"] = catch_up
                if not catch_up:
                    schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
                self._write(schedule)
        return {}

    def fire_due(self) -> datetime | None:
        """Start every run that is due; return the next instant, None when there is none."""
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
        """At the server's start, skip missed instants unless they are to be queued; then start firing."""
        for content in self._store.all(COLLECTION):
            self._clock.begin_at(datetime.fromisoformat(content["updateTime"]))
        for content in self._store.all(COLLECTION):
            schedule = Schedule(content)
            if content["state"] == "ACTIVE" and not schedule.may_wait and schedule.next_run <= self._clock.now():
                first = firing.first_instant(schedule, self._clock.now())
                self._write(content | {"nextRunTime": time_text(first)}, wake=False)
        self._waker.start()

    def close(self) -> None:
        """Stop firing; no run starts after this returns."""
        self._waker.stop()

    def _start(self, schedule: Schedule, instant: datetime) -> str:
        request = schedule.content["createPipelineJobRequest"]
        _, project, _, region = request["parent"].split("/")
        location = Location(project=project, region=region)
        job_id = _scheduled_job_id(schedule.content, instant)
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
                # The server was killed after it had started the run, but before it had stored that.
                return f"OK: {location.child(pipeline_jobs.COLLECTION, job_id)}"
            self._log(f"schedule {schedule.content['displayName']}: run of {time_text(instant)} refused: {error}")
            return f"{error.status.name}: {error}"
        self._log(f"schedule {schedule.content['displayName']}: run of {time_text(instant)} is {job['name']}")
        return f"OK: {job['name']}"

    def _write(self, schedule: dict[str, Any], *, wake: bool = True) -> None:
        self._store.write(COLLECTION, schedule["name"].rpartition("/")[2], schedule)
        if wake:
            self._waker.wake()

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


def _scheduled_job_id(schedule: dict[str, Any], instant: datetime) -> str:
    """Derive the id of an instant's run from the instant, so that no instant runs twice."""
    spec = schedule["createPipelineJobRequest"]["pipelineJob"]["pipelineSpec"]
    return run_folder.readable_id(pipeline_name(spec), f"{instant:%Y%m%d%H%M%S}-{schedule['name'][-6:]}")


def check(schedule: dict[str, Any]) -> None:
    """Refuse a schedule that could not run as written.

    Raises:
        ApiError: The error names the first wrong field.
    """
    if not 1 <= len(schedule.get("displayName", "")) <= 128:
        raise invalid("displayName: expected 1 to 128 characters")
    if "cron" not in schedule:
        raise invalid("cron is missing, e.g. 'TZ=Europe/Berlin 0 3 * * 1'")
    Cron.parse(schedule["cron"])
    request = schedule.get("createPipelineJobRequest", {})
    if not request.get("pipelineJob", {}).get("pipelineSpec"):
        raise invalid(
            "createPipelineJobRequest.pipelineJob.pipelineSpec is missing; this server schedules only pipeline jobs"
        )
    parts = request.get("parent", "").split("/")
    if [len(parts), *parts[::2]] != [4, "projects", "locations"]:
        raise invalid("createPipelineJobRequest.parent: expected projects/P/locations/L")
    if int(schedule.get("maxConcurrentRunCount", 0)) < 1:
        raise invalid("maxConcurrentRunCount: expected 1 or more")
    for name in ("maxRunCount", "maxConcurrentActiveRunCount"):
        if int(schedule.get(name, 1)) < 1:
            raise invalid(f"{name}: expected 1 or more; leave it out for no limit")
    if "endTime" in schedule and firing.time_of(schedule["endTime"]) <= firing.time_of(schedule["startTime"]):
        raise invalid("endTime: expected a time after the start")
