"""The calls that make the schedules of the service match the file, and their order.

A schedule is known by its display name, and as managed by the label `schedule-hash` of its pipeline job. The pipeline
job of a schedule cannot be changed in place, so such a schedule is replaced at a moment that no cron can match, the
handover: the new one starts there and the old one ends there. The new one is created first, so that a refused `create`
leaves the old one as it was. After an interruption, the next plan continues from the schedules that it finds
(docs/decisions, 0071).
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pipelines.schedules.file import Schedule
from pipelines.vertex import Location

_HASH_LABEL = "schedule-hash"
"""Label of the scheduled PipelineJob: the first 32 hexadecimal digits of its SHA-256."""

_MARGIN = timedelta(seconds=30)
"""Shortest time from the plan to the handover, in which the calls are made."""

_LONGEST_HANDOVER = _MARGIN + timedelta(minutes=1)
"""A later start is not a handover's: the file had it, and may remove it again."""

Verb = Literal["create", "update", "pause", "resume", "end", "delete"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """One call."""

    verb: Verb
    name: str
    location: Location
    reason: str = ""
    resource: str = ""
    """Resource name; empty for the schedule that an earlier `create` with this name makes."""
    body: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Schedule in the format of the REST API."""
    mask: tuple[str, ...] = ()
    """Fields to change, in camelCase; those that are not in the body are cleared."""


def plan(schedules: Iterable[Schedule], existing: Sequence[dict[str, Any]], now: datetime) -> list[Change]:
    """Return the calls that make the service match the schedules of a file; empty if it does already.

    Args:
        schedules: Schedules of the file.
        existing: Schedules of the service, in the format of the REST API.
        now: Time of the plan.
    """
    changes: list[Change] = []
    for schedule in schedules:
        managed = [
            each
            for each in existing
            if each["displayName"] == schedule.name and _is_in(each, schedule.location) and _hash_of(each)
        ]
        changes += _plan_one(schedule, managed, now)
    return changes


def prune(
    schedules: Iterable[Schedule], existing: Sequence[dict[str, Any]], locations: Iterable[Location]
) -> list[Change]:
    """Return the calls that delete managed schedules that are no longer in the file."""
    names = {(schedule.location, schedule.name) for schedule in schedules}
    return [
        Change(
            verb="delete", name=each["displayName"], location=location, resource=each["name"], reason="not in the file"
        )
        for location in locations
        for each in existing
        if _is_in(each, location) and _hash_of(each) and (location, each["displayName"]) not in names
    ]


def _handover(now: datetime) -> datetime:
    """Return the moment of a replacement: second 30 of a minute, where no cron fires, at least 30 s from now."""
    moment = (now + _MARGIN).replace(second=30, microsecond=0)
    return moment if moment >= now + _MARGIN else moment + timedelta(minutes=1)


def _job_hash(job: Any) -> str:
    """Return 32 hexadecimal digits that change with the spec, the parameters and all settings of the job."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:32]


def _hash_of(existing: dict[str, Any]) -> str:
    """Return the hash in the label of a schedule of the service; empty if it is not managed."""
    job = existing.get("createPipelineJobRequest", {}).get("pipelineJob", {})
    return str(job.get("labels", {}).get(_HASH_LABEL, ""))


def _plan_one(schedule: Schedule, managed: list[dict[str, Any]], now: datetime) -> list[Change]:
    over = schedule.end is not None and schedule.end <= now
    expected = _job_hash(schedule.job)
    same = [each for each in managed if _hash_of(each) == expected and (over or each["state"] != "COMPLETED")]
    # The oldest one is kept, because its handover is already done.
    kept = min(same, key=lambda each: str(each["createTime"]), default=None)
    others = [each for each in managed if each is not kept]
    if kept:
        return [*_updates(schedule, kept, now), *_retire(others, schedule, _moment(kept["startTime"]), now)]
    if over:
        return _retire(others, schedule, now, now)
    replaced = [each for each in others if each["state"] != "COMPLETED"]
    begin = _handover(now) if replaced or not schedule.enabled else now
    target: dict[str, Any] = {"name": schedule.name, "location": schedule.location}
    reason = "its pipeline, parameters or account changed" if replaced else "new"
    changes = [Change(verb="create", body=_body(schedule, begin, now), reason=reason, **target)]
    if not schedule.enabled:
        changes.append(Change(verb="pause", reason="enabled is false", **target))
    return [*changes, *_retire(others, schedule, begin, now)]


def _body(schedule: Schedule, begin: datetime, now: datetime) -> dict[str, Any]:
    job = {**schedule.job, "labels": {**schedule.job.get("labels", {}), _HASH_LABEL: _job_hash(schedule.job)}}
    start = max(begin, schedule.start) if schedule.start else begin
    return {
        **_fields(schedule),
        "displayName": schedule.name,
        **({"startTime": _text(start)} if start > now else {}),
        "createPipelineJobRequest": {"parent": schedule.location.parent, "pipelineJob": job},
    }


def _fields(schedule: Schedule) -> dict[str, Any]:
    fields: dict[str, Any] = {"cron": schedule.cron, "maxConcurrentRunCount": str(schedule.max_concurrent_runs)}
    fields["allowQueueing"] = schedule.allow_queueing
    return fields | ({"endTime": _text(schedule.end)} if schedule.end else {})


def _updates(schedule: Schedule, kept: dict[str, Any], now: datetime) -> list[Change]:
    target = {"name": schedule.name, "location": schedule.location, "resource": kept["name"]}
    if kept["state"] == "COMPLETED":
        return []
    if schedule.end and schedule.end <= min(now, _moment(kept["startTime"])):
        # The service accepts no end that is before the start.
        return [Change(verb="delete", reason="its end has passed", **target)]
    fields, changes = _fields(schedule), []
    if schedule.start and schedule.start > now:
        fields["startTime"] = _text(schedule.start)
    elif _moment(kept["startTime"]) > now + _LONGEST_HANDOVER:
        fields["startTime"] = _text(now + _MARGIN)
    compared = {*fields, "endTime"}
    mask = tuple(sorted(key for key in compared if _comparable(kept.get(key)) != _comparable(fields.get(key))))
    if mask:
        reason = ", ".join(f"{key}: {kept.get(key)} -> {fields.get(key)}" for key in mask)
        changes.append(Change(verb="update", body=fields, mask=mask, reason=reason, **target))
    if schedule.enabled == (kept["state"] == "PAUSED"):
        verb: Verb = "resume" if schedule.enabled else "pause"
        changes.append(Change(verb=verb, reason=f"enabled is {str(schedule.enabled).lower()}", **target))
    return changes


def _retire(others: Iterable[dict[str, Any]], schedule: Schedule, begin: datetime, now: datetime) -> list[Change]:
    changes = []
    for old in others:
        target = {"name": schedule.name, "location": schedule.location, "resource": old["name"]}
        runs_before = old["state"] == "ACTIVE" and _moment(old["nextRunTime"]) < begin
        if begin <= now or not runs_before:
            changes.append(Change(verb="delete", reason="replaced", **target))
        elif "endTime" not in old or _moment(old["endTime"]) > begin:
            # A run is due before the handover: the old schedule still starts it, and ends at the handover.
            body = {"endTime": _text(begin)}
            changes.append(Change(verb="end", body=body, mask=("endTime",), reason=_text(begin), **target))
    return changes


def _is_in(existing: dict[str, Any], location: Location) -> bool:
    # Google's resource names have the number of the project instead of its id; each list is of one project already.
    return f"/locations/{location.region}/" in str(existing["name"])


def _comparable(value: Any) -> Any:
    if isinstance(value, str) and value.endswith("Z"):
        return _moment(value)
    return value or None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
