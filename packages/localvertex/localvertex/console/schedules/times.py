"""The times at which a cron expression or a schedule fires next."""

from datetime import datetime, timedelta

from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import Schedule, first_instant, time_of


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
