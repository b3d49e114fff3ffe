"""schedules: the resource and its methods; firing.py has what happens when one is due."""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.userinput.spelling import camel
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found, not_written
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import StoredRecords
from localvertex.api.rest.store import Damaged, Store
from localvertex.api.schedules import firing
from localvertex.api.schedules.clock import RETRY_SECONDS, Clock, Waker
from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import FiringReport, Schedule, ScheduledRuns, location_of, time_text
from localvertex.store import record

COLLECTION = "schedules"

INPUT_FIELDS = (
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

_RECORD = {
    "state!": frozenset({"ACTIVE", "PAUSED", "COMPLETED"}),
    "lastScheduledRunResponse": {"runResponse": str},
}
"""Fields of a record besides those of a request."""

_PARENT = re.compile(r"projects/[A-Za-z0-9][A-Za-z0-9._:-]{0,127}/locations/[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class Schedules:
    """The schedules of the API."""

    def __init__(self, store: Store, jobs: PipelineJobs, *, clock: Clock, log: WriteLine) -> None:
        self._store, self._jobs, self.clock, self._log = store, jobs, clock, log
        self._runs = ScheduledRuns(jobs, log)
        self._waker = Waker(clock, self.fire_due, self.skip_missed, log)
        self._locks: dict[str, threading.RLock] = {}
        store.expect(COLLECTION, _RECORD, _check_record)
        jobs.when_one_ends(self._waker.wake)

    def create(self, call: Call) -> JsonObject:
        """Create a schedule, which is ACTIVE at once."""
        body = messages.parse("Schedule", call.body)
        number, now = record.new_number(), self.clock.now()
        schedule = {"name": call.location.child(COLLECTION, number), "state": "ACTIVE", "startedRunCount": "0"}
        schedule |= {"createTime": time_text(now), "updateTime": time_text(now), "startTime": time_text(now)}
        schedule |= {key: body[key] for key in INPUT_FIELDS if key in body}
        check(schedule)
        self._check_pipeline(schedule)
        schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
        self._write(schedule)
        return schedule

    def get(self, call: Call) -> JsonObject:
        """Return one schedule."""
        return records(self._store).get(call)

    def list_all(self, call: Call) -> JsonObject:
        """List the schedules of a location."""
        fields = messages.field_names("Schedule")
        return page_of(call, records(self._store), fields=fields)

    def delete(self, call: Call) -> JsonObject:
        """Delete a schedule; the runs that it started continue."""
        with self._lock_of(call.resource_id):
            with suppress(Damaged):
                self._store.find(call, COLLECTION)
            self._store.remove(COLLECTION, call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def patch(self, call: Call) -> JsonObject:
        """Change the fields that the mask names; runs that are due but have not started are skipped, as in the API."""
        body = messages.parse("Schedule", call.body)
        paths = [part.strip() for part in call.query.get("updateMask", "").split(",") if part.strip()]
        named = [camel(path.split(".")[0]) for path in paths]
        if not named or set(named) - set(INPUT_FIELDS):
            raise invalid(
                f"updateMask {call.query.get('updateMask', '')[:200]!r}: expected some of {', '.join(INPUT_FIELDS)}"
            )
        with self._lock_of(call.resource_id):
            now = self.clock.now()
            schedule = {key: value for key, value in self._settled(call, now).items() if key not in named}
            schedule |= {key: body[key] for key in named if key in body}
            schedule.setdefault("startTime", schedule["createTime"])
            check(schedule)
            if "createPipelineJobRequest" in named:
                self._check_pipeline(schedule)
            schedule["nextRunTime"] = time_text(firing.first_instant(Schedule(schedule), now))
            self._write(schedule | {"updateTime": time_text(now)})
            return self._store.find(call, COLLECTION)

    def pause(self, call: Call) -> JsonObject:
        """Start no new runs until the schedule is resumed."""
        with self._lock_of(call.resource_id):
            now = self.clock.now()
            schedule = self._settled(call, now)
            if schedule["state"] == "ACTIVE":
                times = {"lastPauseTime": time_text(now), "updateTime": time_text(now)}
                self._write(schedule | {"state": "PAUSED"} | times)
        return {}

    def resume(self, call: Call) -> JsonObject:
        """Start runs again; with `catchUp` the missed ones come first."""
        with self._lock_of(call.resource_id):
            now = self.clock.now()
            schedule = self._settled(call, now)
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

    def run_now(self, number: str) -> str:
        """Start a run as an instant of its cron does, whatever the state of the schedule, which stays as it is.

        Returns:
            The name of the new job.

        Raises:
            ApiError: The schedule does not exist, its limit is reached, or the run is refused.
            OSError: The run could not be started, e.g. because the disk is full.
        """
        try:
            content = self._store.read(COLLECTION, number)
        except Damaged as error:
            raise error.api_error(f"the schedule {number}") from None
        if content is None:
            raise not_found(f"the schedule {number}")
        schedule = Schedule(content)
        with self._lock_of(number):
            reason = firing.why_full(schedule, self._runs)
            name, reason = ("", reason) if reason else self._runs.start(schedule, self.clock.now())
        if not name:
            raise ApiError(Status.FAILED_PRECONDITION, reason)
        return name

    def fire_due(self) -> datetime | None:
        """Start every run that is due; return the next instant, None when there is none."""
        moments = [self._handle_safely(self._fire, number) for number in self._store.ids(COLLECTION)]
        return min((each for each in moments if each is not None), default=None)

    def begin(self) -> None:
        """At the server's start, skip missed instants unless the schedule queues them; then start firing."""
        for content in self._store.all(COLLECTION):
            self.clock.begin_at(datetime.fromisoformat(content["updateTime"]))
        self.skip_missed()
        self._waker.start()

    def skip_missed(self) -> None:
        """Skip the instants at which no server ran, or the machine slept, unless the schedule queues them."""
        for number in self._store.ids(COLLECTION):
            self._handle_safely(self._skip_missed, number)

    def close(self) -> None:
        """Stop firing; no run starts after this returns."""
        self._waker.stop()

    def _fire(self, number: str) -> datetime | None:
        """Handle every instant of a schedule up to now, one by one; return the next one."""
        while True:
            with self._lock_of(number):
                schedule = self._active(number)
                if schedule is None:
                    return None
                progress = firing.fire(schedule, self.clock.now(), self._runs)
                if progress is FiringReport.IDLE:
                    return schedule.next_run
                if progress is FiringReport.WAITS:
                    return None
                # If this fails, the next attempt finds the run.
                self._write(schedule.content, wake=False)

    def _skip_missed(self, number: str) -> None:
        """Skip past instants of one schedule; start or note a run whose start was interrupted."""
        with self._lock_of(number):
            schedule, now = self._active(number), self.clock.now()
            if schedule is None or schedule.may_wait or schedule.next_run > now:
                return
            if self._runs.was_begun(schedule, schedule.next_run):
                firing.fire(schedule, now, self._runs)
            if not schedule.is_over:
                schedule.content["nextRunTime"] = time_text(firing.first_instant(schedule, now))
            self._store.keep(COLLECTION, number, schedule.content)

    def _handle_safely(self, handle: Callable[[str], datetime | None], number: str) -> datetime | None:
        """Handle a schedule; a failure is recorded on it, retried, and does not affect other schedules."""
        try:
            return handle(number)
        except Damaged:
            return None
        except Exception as error:  # the other schedules continue after any failure
            reason = not_written(error) if isinstance(error, OSError) else error
            status = reason.status.name if isinstance(reason, ApiError) else f"INTERNAL: {type(error).__name__}"
            self._record_failure(number, f"{status}: {reason}; the run is tried again")
            return self.clock.after_real_seconds(RETRY_SECONDS)

    def _record_failure(self, number: str, text: str) -> None:
        with self._lock_of(number):
            schedule = self._active(number)
            if schedule and schedule.content.get("lastScheduledRunResponse", {}).get("runResponse") != text:
                self._log(f"schedule {schedule.content['displayName']}: {text}")
                self._store.keep(COLLECTION, number, firing.note_failure(schedule, text))

    def _active(self, number: str) -> Schedule | None:
        content = self._store.read(COLLECTION, number)
        return None if content is None or content["state"] != "ACTIVE" else Schedule(dict(content))

    def _lock_of(self, number: str) -> threading.RLock:
        """Return the lock of one schedule: no other schedule waits for the seconds that the start of a run may take."""
        with self._store.lock:
            return self._locks.setdefault(number, threading.RLock())

    def _write(self, schedule: JsonObject, *, wake: bool = True) -> None:
        self._store.write(COLLECTION, schedule["name"].rpartition("/")[2], schedule)
        if wake:
            self._waker.wake()

    def _settled(self, call: Call, now: datetime) -> JsonObject:
        """Return a schedule to change, with every run that was started noted on it."""
        try:
            schedule = Schedule(self._store.find(call, COLLECTION))
        except Damaged as error:
            raise error.api_error(call.location.child(COLLECTION, call.resource_id)) from None
        if schedule.content["state"] == "COMPLETED":
            raise ApiError(Status.FAILED_PRECONDITION, f"{schedule.content['name']} is COMPLETED; create a new one")
        firing.settle(schedule, now, self._runs)
        return schedule.content

    def _check_pipeline(self, schedule: JsonObject) -> None:
        """Refuse a pipeline that cannot run here, before its first run does."""
        request = schedule["createPipelineJobRequest"]
        self._jobs.check(location_of(request), request["pipelineJob"])


def records(store: Store) -> StoredRecords:
    """Return the records of the schedules as lists read them."""
    large = frozenset({"createPipelineJobRequest"})
    return StoredRecords(store=store, collection=COLLECTION, large=large, stand_in=damaged_resource)


def damaged_resource(call: Call, number: str, reason: str) -> JsonObject:
    """Build the stand-in for a schedule whose record is damaged; it starts nothing."""
    text = f"INTERNAL: its record is damaged ({reason}); delete it and create it again"
    schedule = {"name": call.location.child(COLLECTION, number), "displayName": number}
    return schedule | {"state": "STATE_UNSPECIFIED", "lastScheduledRunResponse": {"runResponse": text}}


def check(schedule: JsonObject) -> None:
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
    if not _PARENT.fullmatch(request.get("parent", "")):
        raise invalid("createPipelineJobRequest.parent: expected projects/P/locations/L")
    if int(schedule.get("maxConcurrentRunCount", 0)) < 1:
        raise invalid("maxConcurrentRunCount: expected 1 or more")
    for name in ("maxRunCount", "maxConcurrentActiveRunCount"):
        if int(schedule.get(name, 1)) < 1:
            raise invalid(f"{name}: expected 1 or more; leave it out for no limit")
    if "endTime" in schedule and firing.time_of(schedule["endTime"]) <= firing.time_of(schedule["startTime"]):
        raise invalid("endTime: expected a time after the start")


def _check_record(schedule: JsonObject) -> None:
    """Raise one of `UNUSABLE` when a stored schedule is damaged."""
    check(schedule)
    int(schedule["startedRunCount"])
    times = ["createTime", "updateTime", "startTime", *(["nextRunTime"] if schedule["state"] != "COMPLETED" else [])]
    times += [name for name in ("endTime", "lastPauseTime", "lastResumeTime") if name in schedule]
    for name in times:
        if firing.time_of(schedule[name]).tzinfo is None:
            raise ValueError(f"{name} {schedule[name]!r} has no time zone")
