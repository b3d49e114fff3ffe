"""What a schedule does when an instant of its cron has come: start a run, leave it out, or let it wait.

The resource itself holds all that is needed to go on after a restart. `nextRunTime` is the next instant that has not
been dealt with; while a run waits for its turn it stays in the past, as the API describes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from localvertex.serve.schedules.cron import Cron


def time_of(text: str) -> datetime:
    """A time of the API."""
    return datetime.fromisoformat(text)


def time_text(moment: datetime) -> str:
    """A time as the API writes it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Schedule:
    """A schedule whose resource is `content`; firing changes it."""

    content: dict[str, Any]

    @property
    def cron(self) -> Cron:
        """When it fires."""
        return Cron.parse(self.content["cron"])

    @property
    def next_run(self) -> datetime:
        """The next instant that has not been dealt with."""
        return time_of(self.content["nextRunTime"])

    @property
    def limit(self) -> int:
        """Runs at once."""
        names = ("maxConcurrentRunCount", "maxConcurrentActiveRunCount")
        return min(int(self.content[name]) for name in names if name in self.content)

    @property
    def may_wait(self) -> bool:
        """Whether the next run waits for its turn; otherwise it is left out when the limit is reached."""
        if self.content.get("allowQueueing", False):
            return True
        resumed = self.content.get("lastResumeTime", "")
        return bool(self.content.get("catchUp") and resumed and self.next_run <= time_of(resumed))

    @property
    def is_over(self) -> bool:
        """Whether no further run will come."""
        if int(self.content["startedRunCount"]) >= int(self.content.get("maxRunCount", 2**62)):
            return True
        return "endTime" in self.content and self.next_run > time_of(self.content["endTime"])


def first_instant(schedule: Schedule, now: datetime) -> datetime:
    """The first instant of the cron from now on that is not before the start time."""
    start = time_of(schedule.content["startTime"])
    # An instant that is the start time itself counts.
    return schedule.cron.after(max(now, start - timedelta(microseconds=1)))


def fire(
    schedule: Schedule,
    now: datetime,
    *,
    start: Callable[[Schedule, datetime], str],
    num_active: Callable[[str], int],
) -> bool:
    """Deals with every instant up to now.

    Args:
        schedule: Its content is changed.
        now: The present moment.
        start: Starts a run and returns the service's answer in words.
        num_active: How many runs of the schedule of this name have not ended.

    Returns:
        Whether a run waits until another one ends.
    """
    content, cron = schedule.content, schedule.cron
    while not schedule.is_over and schedule.next_run <= now:
        instant = schedule.next_run
        if num_active(content["name"]) < schedule.limit:
            response = start(schedule, instant)
            content["startedRunCount"] = str(int(content["startedRunCount"]) + 1)
        elif schedule.may_wait:
            return True
        else:
            response = f"SKIPPED: {schedule.limit} at once are allowed and still running"
        content["lastScheduledRunResponse"] = {"scheduledRunTime": time_text(instant), "runResponse": response}
        content["nextRunTime"], content["updateTime"] = time_text(cron.after(instant)), time_text(now)
    if schedule.is_over:
        content["state"] = "COMPLETED"
        content.pop("nextRunTime")
    return False
