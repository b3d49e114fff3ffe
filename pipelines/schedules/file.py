"""The schedules of `schedules.yaml`, read strictly and checked before any call."""

import dataclasses
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from types import UnionType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import check_keys, read
from localvertex._base.userinput.spelling import quote
from localvertex.machines import load_catalogue
from localvertex.machines.commands.options import known_region
from pipelines.jobs.pipeline_job import JOB_SETTINGS, JobSettings, check, pipeline_job, read_spec
from pipelines.vertex import Location

DEFAULT_FILE = "schedules.yaml"

_OPTIONAL = ("max_concurrent_runs", "allow_queueing", "enabled")
_TYPES: Mapping[str, type | UnionType] = {
    **dict.fromkeys(("name", "cron", "time_zone", "file", "region", *JOB_SETTINGS), str),
    "parameters": dict,
    "max_concurrent_runs": int,
    **dict.fromkeys(("allow_queueing", "enabled"), bool),
    **dict.fromkeys(("start", "end"), str | date),
}
"""Key of a schedule -> type of its value in YAML."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """One schedule of the file."""

    name: str
    """Display name, by which the schedule is found again."""
    cron: str
    """Cron in the format of the API, with the zone: TZ=Europe/Berlin 0 3 * * 1."""
    location: Location
    job: Mapping[str, Any]
    """PipelineJob in the format of the REST API."""
    max_concurrent_runs: int = 1
    allow_queueing: bool = False
    start: datetime | None = None
    end: datetime | None = None
    enabled: bool = True
    warnings: tuple[str, ...] = ()
    """Findings that the service does not refuse."""

    def __post_init__(self) -> None:
        """Refuse values that the API would refuse.

        Raises:
            UserError: A value is not valid.
        """
        if not 1 <= len(self.name) <= 128 or not self.name.isprintable():
            raise UserError(f"name is {quote(self.name)}; expected 1 to 128 characters")
        if self.max_concurrent_runs < 1:
            raise UserError(f"max_concurrent_runs is {self.max_concurrent_runs}; expected 1 or more")
        if self.start and self.end and self.end <= self.start:
            raise UserError(f"end is {self.end.isoformat()}; expected a time after start, {self.start.isoformat()}")


def read_schedules(path: str | Path, location: Location) -> list[Schedule]:
    """Return the schedules of a file.

    Args:
        path: YAML file with the one key `schedules`, a list; its paths are relative to its folder.
        location: Project and endpoint of all schedules, region of those that have none.

    Raises:
        UserError: It cannot be read, or a value is wrong; the message begins with the path in the file.
    """
    document = read(path)
    if not isinstance(document, dict) or set(document) != {"schedules"} or not isinstance(document["schedules"], list):
        raise UserError(
            f"{path} has no list of schedules; expected the single key `schedules` with items `- name: ...`"
        )
    schedules: list[Schedule] = []
    for index, body in enumerate(document["schedules"]):
        item = f"{path}, schedules[{index}]"
        if isinstance(body, dict) and isinstance(body.get("name"), str):
            item += f" ({body['name'][:60]})"
        try:
            schedule = _schedule(body, Path(path).parent, location)
        except UserError as error:
            raise UserError(f"{item}: {error}") from None
        if any((other.name, other.location) == (schedule.name, schedule.location) for other in schedules):
            raise UserError(f"{item}: the name is already used in {schedule.location.region}; give each its own name")
        schedules.append(schedule)
    return schedules


def _schedule(body: Any, folder: Path, location: Location) -> Schedule:
    check_keys(body, _TYPES)
    if missing := [key for key in ("name", "cron", "file") if key not in body]:
        raise UserError(f"{' and '.join(missing)} is missing")
    known_region(load_catalogue(), body.get("region"), field="region")
    location = dataclasses.replace(location, region=body.get("region", location.region))
    settings = JobSettings(**{key: body.get(key, "") for key in JOB_SETTINGS})
    spec = read_spec(folder / body["file"])
    job = pipeline_job(spec, display_name=body["name"], parameters=body.get("parameters", {}), settings=settings)
    warnings = [finding.message for finding in check(job, location)]
    if job["runtimeConfig"]["parameterValues"].get("force_promotion") is True:
        warnings.append("force_promotion promotes every model that reaches minimum_score, even a worse or useless one")
    return Schedule(
        name=body["name"],
        cron=_cron_with_zone(body["cron"], body.get("time_zone", "UTC")),
        location=location,
        job=job,
        start=_time(body, "start"),
        end=_time(body, "end"),
        warnings=tuple(warnings),
        **{key: body[key] for key in _OPTIONAL if key in body},
    )


def _cron_with_zone(expression: str, zone: str) -> str:
    """Return cron and zone in the format of the API.

    Raises:
        UserError: The zone is unknown, or the expression is not valid or never matches.
    """
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(f"time_zone is {zone!r}; expected a name of the IANA database such as Europe/Berlin") from None
    if "=" in expression:
        raise UserError(f"cron is {expression!r}; write the zone as `time_zone: Europe/Berlin` on its own line")
    if len(expression.split()) != 5:
        raise UserError(f"cron is {expression!r}; expected five fields such as 0 3 * * 1, Mondays at 03:00")
    # The parser below also accepts L, W and #, which the service's unix-cron does not.
    if not re.fullmatch(r"(?:[\d*,/ -]|[a-z]{3}\b)+", " ".join(expression.split()), re.IGNORECASE):
        raise UserError(
            f"cron is {expression!r}; expected numbers, names of months and days, and the characters * , - /"
        )
    try:
        next(CronSim(expression, datetime.now(known)))
    except CronSimError as error:
        raise UserError(f"cron is {expression!r}: {error}; expected e.g. 0 3 * * 1, Mondays at 03:00") from None
    except StopIteration:
        raise UserError(f"cron is {expression!r}; this date never occurs") from None
    return f"TZ={zone} {' '.join(expression.split())}"


def _time(body: Mapping[str, Any], key: str) -> datetime | None:
    value = body.get(key)
    if value is None:
        return None
    wrong = UserError(f"{key} is {quote(str(value))}; expected a time with its offset, e.g. 2026-12-01T00:00:00+01:00")
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise wrong
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise wrong from None
