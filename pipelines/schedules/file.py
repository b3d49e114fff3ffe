"""`schedules.yaml`: the schedules a team wants, read strictly and checked before any call."""

import dataclasses
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from accelerators import load_catalogue
from accelerators.commands.options import known_region
from pipelines.jobs.pipeline_job import JobSettings, check, pipeline_job, read_pipeline
from pipelines.vertex import Place
from userinput.errors import UserError
from userinput.reading import read
from userinput.spelling import did_you_mean, quoted

DEFAULT_FILE = "schedules.yaml"

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str, "cron": str, "time_zone": str, "file": str, "region": str, "parameters": dict, "pipeline_root": str,
    "service_account": str, "network": str, "kms_key": str, "max_concurrent_runs": int, "allow_queueing": bool,
    "start": (str, date), "end": (str, date), "enabled": bool,
}  # fmt: skip
"""Key of a schedule -> what YAML has to make of its value."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """One schedule of the file."""

    name: str
    """Display name; schedules are found again by it."""
    cron: str
    """With the zone in front, as the API takes it: TZ=Europe/Berlin 0 3 * * 1."""
    place: Place
    job: Mapping[str, Any]
    """PipelineJob as the REST API takes it."""
    max_concurrent_runs: int = 1
    allow_queueing: bool = False
    start: datetime | None = None
    end: datetime | None = None
    enabled: bool = True
    warnings: tuple[str, ...] = ()
    """What the machine check found that the service does not refuse."""

    def __post_init__(self) -> None:
        """Refuse what the API would refuse."""
        if not 1 <= len(self.name) <= 128 or not self.name.isprintable():
            raise UserError(f"name is {quoted(self.name)}; expected 1 to 128 characters")
        if self.max_concurrent_runs < 1:
            raise UserError(f"max_concurrent_runs is {self.max_concurrent_runs}; expected 1 or more")
        if self.start and self.end and self.end <= self.start:
            raise UserError(f"end is {self.end.isoformat()}; expected a time after start, {self.start.isoformat()}")


def read_schedules(path: str | Path, *, project: str, region: str, endpoint: str) -> list[Wanted]:
    """Return the schedules of a file; files of pipelines are named from its folder.

    Args:
        path: YAML with one key, `schedules`, a list.
        project: Project of all of them.
        region: Region of those that name none.
        endpoint: URL of `localvertex serve`; empty for Google's.

    Raises:
        UserError: It cannot be read, or a value is wrong; the message begins with the path in the file.
    """
    document = read(path)
    if not isinstance(document, dict) or set(document) != {"schedules"} or not isinstance(document["schedules"], list):
        raise UserError(f"{path} has no list of schedules; expected the one key `schedules` and below it `- name: ...`")
    found: list[Wanted] = []
    for index, body in enumerate(document["schedules"]):
        where = f"{path}, schedules[{index}]"
        if isinstance(body, dict) and isinstance(body.get("name"), str):
            where += f" ({body['name'][:60]})"
        try:
            one = _wanted(body, Path(path).parent, project=project, region=region, endpoint=endpoint)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if any((other.name, other.place) == (one.name, one.place) for other in found):
            raise UserError(f"{where}: name is there twice in {one.place.region}; schedules are known by their names")
        found.append(one)
    return found


def _wanted(body: Any, folder: Path, *, project: str, region: str, endpoint: str) -> Wanted:
    _check_keys(body)
    known_region(load_catalogue(), body.get("region"), field="region")
    place = Place(project=project, region=body.get("region", region), endpoint=endpoint)
    settings = JobSettings(
        **{key: body.get(key, "") for key in ("pipeline_root", "service_account", "network", "kms_key")}
    )
    spec = read_pipeline(folder / body["file"])
    job = pipeline_job(spec, display_name=body["name"], parameters=body.get("parameters", {}), settings=settings)
    findings = check(job, place)
    return Wanted(
        name=body["name"],
        cron=cron_text(body["cron"], body.get("time_zone", "UTC")),
        place=place,
        job=job,
        start=_time(body, "start"),
        end=_time(body, "end"),
        warnings=tuple(finding.message for finding in findings),
        **{key: body[key] for key in ("max_concurrent_runs", "allow_queueing", "enabled") if key in body},
    )


def _check_keys(body: Any) -> None:
    if not isinstance(body, dict):
        raise UserError(f"it is {quoted(body)}; expected name, cron, file and so on")
    for key, value in body.items():
        if key not in TYPES:
            raise UserError(f"unknown key {key!r}{did_you_mean(str(key), TYPES)}; known are {', '.join(TYPES)}")
        # In Python a boolean is an integer, too.
        if not isinstance(value, TYPES[key]) or (isinstance(value, bool) and TYPES[key] is int):
            kind = TYPES[key]
            expected = "a time" if isinstance(kind, tuple) else kind.__name__
            raise UserError(f"{key} is {quoted(value)}; expected {expected}")
    missing = [key for key in ("name", "cron", "file") if key not in body]
    if missing:
        raise UserError(f"{' and '.join(missing)} is missing")


def cron_text(expression: str, zone: str) -> str:
    """Return cron and zone as the API takes them.

    Raises:
        UserError: The zone is unknown, the expression is none, or it never comes.
    """
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(f"time_zone is {zone!r}; expected a name of the IANA database such as Europe/Berlin") from None
    if "=" in expression:
        raise UserError(f"cron is {expression!r}; write the zone as `time_zone: Europe/Berlin` on a line of its own")
    if len(expression.split()) != 5:
        raise UserError(f"cron is {expression!r}; expected five fields such as 0 3 * * 1, Mondays at 03:00")
    # What the parser below knows beyond that (L, W, #) is not the service's unix-cron.
    if not re.fullmatch(r"(?:[\d*,/ -]|[a-z]{3}\b)+", " ".join(expression.split()), re.IGNORECASE):
        raise UserError(f"cron is {expression!r}; expected numbers, names of months and days, and the signs * , - /")
    try:
        next(CronSim(expression, datetime.now(known)))
    except CronSimError as error:
        raise UserError(f"cron is {expression!r}: {error}; expected e.g. 0 3 * * 1, Mondays at 03:00") from None
    except StopIteration:
        raise UserError(f"cron is {expression!r}; no such day ever comes") from None
    return f"TZ={zone} {' '.join(expression.split())}"


def _time(body: Mapping[str, Any], key: str) -> datetime | None:
    value = body.get(key)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise UserError(
            f"{key} is {quoted(str(value))}; expected a time with its offset, e.g. 2026-12-01T00:00:00+01:00"
        )
    return moment.astimezone(UTC)
