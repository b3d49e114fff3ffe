"""What a schedule does at an instant of its cron: start a run, skip it, or let it wait.

The resource itself contains everything that is needed after a restart. `nextRunTime` is the next instant that has not
been handled; while a run waits for its turn it stays in the past, as the API describes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from localvertex.serve.schedules.cron import Cron


def time_of(text: str) -> datetime:
    """Read a time of the API."""
    return datetime.fromisoformat(text)


def time_text(moment: datetime) -> str:
    """Format a time as the API does."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Schedule:
    """A schedule whose resource is `content`, which firing changes."""

    content: dict[str, Any]

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
    return schedule.cron.after(max(now, start - timedelta(microseconds=1)))


def fire(
    schedule: Schedule,
    now: datetime,
    *,
    start: Callable[[Schedule, datetime], str],
    num_active: Callable[[str], int],
) -> bool:
    """Handle every instant up to now.

    Args:
        schedule: The schedule, whose content changes.
        now: The current time.
        start: Starts a run and returns the service's response as text.
        num_active: Returns how many runs of the schedule with this name have not ended.

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
            response = f"SKIPPED: the limit of {schedule.limit} concurrent runs is reached"
        content["lastScheduledRunResponse"] = {"scheduledRunTime": time_text(instant), "runResponse": response}
        content["nextRunTime"], content["updateTime"] = time_text(cron.after(instant)), time_text(now)
    if schedule.is_over:
        content["state"] = "COMPLETED"
        content.pop("nextRunTime")
    return False
