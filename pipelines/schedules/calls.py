"""The calls of the schedule service; the SDK's class leaves out `catch_up` and half of a job's fields."""

import re
import warnings
from collections.abc import Iterable
from typing import Any

from pipelines.jobs.pipeline_job import job_id
from pipelines.schedules.plan import Step
from pipelines.vertex import Place, calls, client, message
from userinput.errors import UserError


def present(place: Place) -> list[dict[str, Any]]:
    """Return the schedules of a region as the REST API has them.

    Raises:
        CallFailed: The service refused or was not reached.
    """
    with calls(place):
        return [_json(each) for each in client(place, "ScheduleServiceClient").list_schedules(parent=place.parent)]


def find(place: Place, name: str) -> dict[str, Any]:
    """Return the schedule of a display name or of a number.

    Raises:
        UserError: There is none, or more than one.
    """
    there = present(place)
    found = [s for s in there if name in (s["displayName"], s["name"], s["name"].rpartition("/")[2])]
    # During a replacement two have the name; the one that has ended is not meant.
    found = [s for s in found if s["state"] != "COMPLETED"] or found
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(s["name"].rpartition("/")[2] for s in found)
        raise UserError(f"{len(found)} schedules are called {name!r}; name one by its number: {numbers}")
    names = ", ".join(sorted({s["displayName"] for s in there})) or "none"
    raise UserError(f"no schedule is called {name!r} in {place.region}; there are: {names}")


def take(steps: Iterable[Step]) -> None:
    """Make the calls one after the other; each is printed when it is done.

    Raises:
        CallFailed: One was refused; those before it stand, and the next `apply` goes on.
    """
    made: dict[tuple[Place, str], str] = {}
    for step in steps:
        with calls(step.place):
            _take(step, made)
        print(f"{step.verb} {step.name}", flush=True)


def _take(step: Step, made: dict[tuple[Place, str], str]) -> None:
    schedules = client(step.place, "ScheduleServiceClient")
    resource = step.resource or made.get((step.place, step.name), "")
    match step.verb:
        case "create":
            body = message("Schedule", step.body)
            made[step.place, step.name] = schedules.create_schedule(parent=step.place.parent, schedule=body).name
        case "update" | "end":
            from google.protobuf.field_mask_pb2 import FieldMask

            body = message("Schedule", {**step.body, "name": resource})
            paths = [re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", key) for key in step.mask]
            schedules.update_schedule(schedule=body, update_mask=FieldMask(paths=paths))
        case "pause":
            schedules.pause_schedule(name=resource)
        case "resume":
            resume(step.place, resource, catch_up=False)
        case "delete":
            schedules.delete_schedule(name=resource).result()


def resume(place: Place, resource: str, *, catch_up: bool) -> None:
    """Let a schedule go on; with catch_up the runs missed while it was paused are made up for."""
    request = {"name": resource, "catch_up": catch_up}
    client(place, "ScheduleServiceClient").resume_schedule(request=request)


def run_now(place: Place, schedule: dict[str, Any]) -> str:
    """Start the run that the schedule would start next, beside it; return the job's resource name."""
    job = schedule["createPipelineJobRequest"]["pipelineJob"]
    with calls(place):
        made = client(place, "PipelineServiceClient").create_pipeline_job(
            parent=place.parent,
            pipeline_job=message("PipelineJob", job),
            pipeline_job_id=job_id(job["pipelineSpec"]),
        )
    return str(made.name)


def _json(schedule: Any) -> dict[str, Any]:
    from google.protobuf import json_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: dict[str, Any] = json_format.MessageToDict(type(schedule).pb(schedule))
    return found
