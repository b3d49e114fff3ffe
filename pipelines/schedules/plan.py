"""What has to be called so that the service has the schedules that are wanted, and in which order.

A schedule is known by its display name, and as ours by the label HASH_LABEL of its pipeline job. What its runs are
made of cannot be changed in place; such a schedule is replaced around a moment, the handover, that no cron can name:
the new one starts there, the old one ends there. The new one comes first, so that a refused `create` leaves the old
one as it was; whatever is interrupted, the next plan goes on from what it finds (docs/decisions/0071-schedules.md).
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pipelines.schedules.file import Wanted
from pipelines.vertex import Place

HASH_LABEL = "schedule-hash"
"""Label of the scheduled PipelineJob: first 32 hex digits of the SHA-256 of what its runs are made of."""

ALLOWANCE = timedelta(seconds=30)
"""Least time from the plan to the handover, for the calls to be made."""

LONGEST_HANDOVER = ALLOWANCE + timedelta(minutes=1)
"""A start later than this is not that of a replacement: the file asked for it once, and may take it back."""

Verb = Literal["create", "update", "pause", "resume", "end", "delete"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """One call."""

    verb: Verb
    name: str
    place: Place
    reason: str = ""
    resource: str = ""
    """Resource name; empty for the schedule that an earlier `create` of this name makes."""
    body: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Schedule as the REST API takes it."""
    mask: tuple[str, ...] = ()
    """Fields of the body to change, in camelCase; those that are not in it are cleared."""


def job_hash(job: Any) -> str:
    """Return 32 hex digits that change with everything a run is made of: spec, parameters, account, root, keys."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:32]


def hash_of(schedule: dict[str, Any]) -> str:
    """Return the hash that a schedule of the service carries; empty when it is not ours."""
    job = schedule.get("createPipelineJobRequest", {}).get("pipelineJob", {})
    return str(job.get("labels", {}).get(HASH_LABEL, ""))


def handover(now: datetime) -> datetime:
    """Return the moment of a replacement: half past a minute, where no cron fires, at least 30 s from now."""
    minute = (now + ALLOWANCE).replace(second=30, microsecond=0)
    return minute if minute >= now + ALLOWANCE else minute + timedelta(minutes=1)


def plan(wanted: Iterable[Wanted], present: Sequence[dict[str, Any]], now: datetime) -> list[Step]:
    """Return the calls for the schedules of a file; none where everything is as wanted."""
    steps: list[Step] = []
    for one in wanted:
        ours = [s for s in present if s["displayName"] == one.name and _is_in(s, one.place) and hash_of(s)]
        steps += _plan_one(one, ours, now)
    return steps


def prune(wanted: Iterable[Wanted], present: Sequence[dict[str, Any]], places: Iterable[Place]) -> list[Step]:
    """Return the calls that delete schedules of ours which the file no longer has."""
    names = {(one.place, one.name) for one in wanted}
    return [
        Step(verb="delete", name=s["displayName"], place=place, resource=s["name"], reason="not in the file")
        for place in places
        for s in present
        if _is_in(s, place) and hash_of(s) and (place, s["displayName"]) not in names
    ]


def _plan_one(one: Wanted, ours: list[dict[str, Any]], now: datetime) -> list[Step]:
    over = one.end is not None and one.end <= now
    same = [s for s in ours if hash_of(s) == job_hash(one.job) and (over or s["state"] != "COMPLETED")]
    # The one that has started longest ago is kept: it has handed over already.
    kept = min(same, key=lambda s: str(s["createTime"]), default=None)
    others = [s for s in ours if s is not kept]
    if kept:
        begin = _moment(kept["startTime"])
        return [*_changes(one, kept, now), *_retire(others, one, begin, now)]
    if over:
        return _retire(others, one, now, now)
    going_on = [s for s in others if s["state"] != "COMPLETED"]
    begin = handover(now) if going_on or not one.enabled else now
    reason = "its pipeline, parameters or account changed" if going_on else "new"
    steps = [Step(verb="create", name=one.name, place=one.place, body=_body(one, begin, now), reason=reason)]
    if not one.enabled:
        steps.append(Step(verb="pause", name=one.name, place=one.place, reason="enabled is false"))
    return [*steps, *_retire(others, one, begin, now)]


def _body(one: Wanted, begin: datetime, now: datetime) -> dict[str, Any]:
    job = {**one.job, "labels": {**one.job.get("labels", {}), HASH_LABEL: job_hash(one.job)}}
    start = max(begin, one.start) if one.start else begin
    return {
        **_fields(one),
        "displayName": one.name,
        **({"startTime": _text(start)} if start > now else {}),
        "createPipelineJobRequest": {"parent": one.place.parent, "pipelineJob": job},
    }


def _fields(one: Wanted) -> dict[str, Any]:
    fields: dict[str, Any] = {"cron": one.cron, "maxConcurrentRunCount": str(one.max_concurrent_runs)}
    fields["allowQueueing"] = one.allow_queueing
    return fields | ({"endTime": _text(one.end)} if one.end else {})


def _changes(one: Wanted, kept: dict[str, Any], now: datetime) -> list[Step]:
    place = {"name": one.name, "place": one.place, "resource": kept["name"]}
    if kept["state"] == "COMPLETED":
        return []
    if one.end and one.end <= min(now, _moment(kept["startTime"])):
        # An end before its beginning cannot be given to a schedule.
        return [Step(verb="delete", reason="its end has passed", **place)]
    fields, steps = _fields(one), []
    if one.start and one.start > now:
        fields["startTime"] = _text(one.start)
    elif _moment(kept["startTime"]) > now + LONGEST_HANDOVER:
        fields["startTime"] = _text(now + ALLOWANCE)
    compared = {*fields, "endTime"}
    mask = tuple(sorted(key for key in compared if _plain(kept.get(key)) != _plain(fields.get(key))))
    if mask:
        reason = ", ".join(f"{key}: {kept.get(key)} -> {fields.get(key)}" for key in mask)
        steps.append(Step(verb="update", body=fields, mask=mask, reason=reason, **place))
    if one.enabled == (kept["state"] == "PAUSED"):
        verb: Verb = "resume" if one.enabled else "pause"
        steps.append(Step(verb=verb, reason=f"enabled is {str(one.enabled).lower()}", **place))
    return steps


def _retire(others: Iterable[dict[str, Any]], one: Wanted, begin: datetime, now: datetime) -> list[Step]:
    steps = []
    for old in others:
        place = {"name": one.name, "place": one.place, "resource": old["name"]}
        runs_before = old["state"] == "ACTIVE" and _moment(old["nextRunTime"]) < begin
        if begin <= now or not runs_before:
            steps.append(Step(verb="delete", reason="replaced", **place))
        elif "endTime" not in old or _moment(old["endTime"]) > begin:
            # A run is due before the handover: the old one still starts it, and then ends by itself.
            steps.append(
                Step(verb="end", body={"endTime": _text(begin)}, mask=("endTime",), reason=_text(begin), **place)
            )
    return steps


def _is_in(schedule: dict[str, Any], place: Place) -> bool:
    # At Google the project's number stands in names, not its id; each list is of one project already.
    return f"/locations/{place.region}/" in str(schedule["name"])


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.endswith("Z"):
        return _moment(value)
    return value or None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
