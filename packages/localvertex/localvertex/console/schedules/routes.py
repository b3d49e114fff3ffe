"""The routes of schedules that Vertex AI does not have: next times of a cron, all schedules, run now."""

from datetime import datetime, timedelta

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, invalid
from localvertex.api.rest.store import Store
from localvertex.api.schedules import schedules
from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import Schedule, first_instant, time_of
from localvertex.api.schedules.schedules import Schedules
from localvertex.console.local_route import LocalCall, local_route

_NUM_TIMES = 5

_ANYWHERE = Call(location=Location(project="local-project", region="us-central1"))
"""The location of schedules whose record is damaged; the names of all others contain their location."""


class ScheduleRoutes:
    """The schedules of all locations."""

    def __init__(self, store: Store, schedules: Schedules) -> None:
        self._store, self._schedules = store, schedules

    @local_route("POST", "/local/cron")
    def cron(self, call: LocalCall) -> JsonObject:
        """Return the next times of the field `cron`, which may begin with a time zone, or what is wrong with it.

        An unfinished input is not a failure of the request, so its `error` is not an HTTP error.
        """
        text = call.body.get("cron")
        if not isinstance(text, str):
            raise invalid("cron: expected text, e.g. 'TZ=Europe/Berlin 0 3 * * 1'")
        try:
            cron = Cron.parse(text)
            times = times_of(cron, self._schedules.clock.now(), _NUM_TIMES)
        except ApiError as error:
            return {"error": str(error)}
        factor = self._schedules.clock.factor
        return {"zone": str(cron.zone), "next": times, "time_factor": factor}

    @local_route("GET", "/local/schedules")
    def list_all(self, call: LocalCall) -> JsonObject:
        """Return all schedules without their pipelines, the newest first, after them those with a damaged record."""
        found = schedules.records(self._store).find_all(_ANYWHERE, set())
        newest = sorted(found, key=lambda each: str(each.get("createTime", "")), reverse=True)
        described = [{**each, **self._describe(each)} for each in newest]
        return {"schedules": described, "time_factor": self._schedules.clock.factor}

    def _describe(self, schedule: JsonObject) -> JsonObject:
        """Return its time zone and its next times."""
        try:
            cron = Cron.parse(schedule.get("cron", ""))
            times = times_of_schedule(Schedule(schedule), self._schedules.clock.now(), _NUM_TIMES)
        except ApiError:
            return {"zone": "", "next": []}
        return {"zone": str(cron.zone), "next": times}

    @local_route("POST", "/local/schedules/{id:id}:run")
    def run(self, call: LocalCall) -> JsonObject:
        """Start a run now."""
        return {"name": self._schedules.run_now(call.path["id"])}


def times_of(cron: Cron, after: datetime, number: int) -> list[str]:
    """Return the next times in the zone of the expression, with their offsets from UTC."""
    times, moment = [], after
    for _ in range(number):
        moment = cron.after(moment)
        times.append(moment.astimezone(cron.zone).isoformat(timespec="seconds"))
    return times


def times_of_schedule(schedule: Schedule, now: datetime, number: int) -> list[str]:
    """Return the next times of a schedule; for a paused one, as if it was resumed now."""
    content = schedule.content
    if content["state"] not in ("ACTIVE", "PAUSED"):
        return []
    first = schedule.next_run if content["state"] == "ACTIVE" else first_instant(schedule, now)
    left = int(content.get("maxRunCount", number)) - int(content["startedRunCount"]) * ("maxRunCount" in content)
    times = times_of(schedule.cron, first - timedelta(microseconds=1), max(0, min(number, left)))
    end = time_of(content["endTime"]) if "endTime" in content else None
    return [each for each in times if end is None or time_of(each) <= end]
