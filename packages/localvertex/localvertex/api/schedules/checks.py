"""Check a schedule, as a user sends it and as it is stored."""

import re
from typing import Any

from localvertex.api.rest.errors import invalid
from localvertex.api.schedules import firing
from localvertex.api.schedules.cron import Cron

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

_PARENT = re.compile(r"projects/[A-Za-z0-9][A-Za-z0-9._:-]{0,127}/locations/[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


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
    if not _PARENT.fullmatch(request.get("parent", "")):
        raise invalid("createPipelineJobRequest.parent: expected projects/P/locations/L")
    if int(schedule.get("maxConcurrentRunCount", 0)) < 1:
        raise invalid("maxConcurrentRunCount: expected 1 or more")
    for name in ("maxRunCount", "maxConcurrentActiveRunCount"):
        if int(schedule.get(name, 1)) < 1:
            raise invalid(f"{name}: expected 1 or more; leave it out for no limit")
    if "endTime" in schedule and firing.time_of(schedule["endTime"]) <= firing.time_of(schedule["startTime"]):
        raise invalid("endTime: expected a time after the start")


def check_record(schedule: dict[str, Any]) -> None:
    """Raise one of `UNUSABLE` when a stored schedule is damaged."""
    check(schedule)
    if schedule["state"] not in ("ACTIVE", "PAUSED", "COMPLETED"):
        raise ValueError(f"state {schedule['state']!r}")
    int(schedule["startedRunCount"])
    times = ["createTime", "updateTime", "startTime", *(["nextRunTime"] if schedule["state"] != "COMPLETED" else [])]
    times += [name for name in ("endTime", "lastPauseTime", "lastResumeTime") if name in schedule]
    for name in times:
        if firing.time_of(schedule[name]).tzinfo is None:
            raise ValueError(f"{name} {schedule[name]!r} has no time zone")
    schedule.get("lastScheduledRunResponse", {}).get("runResponse", "").strip()
