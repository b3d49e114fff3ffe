"""A cron expression as a sentence, and the times at which it fires."""

from datetime import datetime, timedelta

from cron_descriptor import ExpressionDescriptor, FormatException, MissingFieldException, Options

from localvertex.api.schedules.cron import Cron
from localvertex.api.schedules.firing import Schedule, first_instant, time_of

_ANY = ("*", "?")

_DAY, _WEEKDAY = 2, 4
"""Fields of an expression."""


def sentence(cron: Cron) -> str:
    """Describe an expression in English, without its time zone; empty if there is no description of it.

    With a day of the month and a day of the week, cron fires on either, or on days that are both when one of the fields
    begins with `*`.
    """
    options = Options()
    options.use_24hour_time_format, options.locale_code = True, "en_US"
    try:
        text = str(ExpressionDescriptor(cron.expression, options).get_description())
    except (FormatException, MissingFieldException, ValueError):
        return ""
    fields = cron.expression.split()
    days = fields[_DAY], fields[_WEEKDAY]
    if any(each in _ANY for each in days):
        return text
    rule = "both days must match" if any(each.startswith("*") for each in days) else "either day is enough"
    return f"{text.replace(', or on ', ', on ')} ({rule})"


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
