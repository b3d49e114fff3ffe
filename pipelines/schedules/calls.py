"""The calls of the schedule service; the SDK's own class lacks `catch_up` and half of the fields of a job."""

from collections.abc import Iterable
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import snake
from pipelines.calls import calls, created_name
from pipelines.jobs.pipeline_job import job_id
from pipelines.schedules.plan import Change
from pipelines.vertex import Location, as_json, client, message


def list_schedules(location: Location) -> list[dict[str, Any]]:
    """Return the schedules of a region in the format of the REST API.

    Raises:
        CallFailed: The service refused the call or could not be reached.
    """
    with calls(location):
        listed = client(location, "ScheduleServiceClient").list_schedules(parent=location.parent)
        return [as_json(schedule) for schedule in listed]


def find(location: Location, name: str) -> dict[str, Any]:
    """Return the schedule with a display name or a number.

    Raises:
        UserError: No schedule has this name, or more than one.
        CallFailed: The service refused the call or could not be reached.
    """
    schedules = list_schedules(location)
    found = [s for s in schedules if name in (s["displayName"], s["name"], _number(s))]
    # During a replacement two schedules have the name, of which one has ended.
    found = [s for s in found if s["state"] != "COMPLETED"] or found
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(map(_number, found))
        raise UserError(f"{len(found)} schedules are called {name!r}; give the number of one: {numbers}")
    names = ", ".join(sorted({s["displayName"] for s in schedules})) or "none"
    raise UserError(f"no schedule is called {name!r} in {location.region}; existing schedules: {names}")


def apply(changes: Iterable[Change]) -> None:
    """Make the calls one after the other, and print each when it is done.

    Raises:
        CallFailed: A call failed; the ones before it are done, and the next `apply` continues.
    """
    created: dict[tuple[Location, str], str] = {}
    for change in changes:
        lost = f"{change.verb} {change.name} may be done: `schedule apply` looks first and continues"
        with calls(change.location, if_lost=lost):
            _apply(change, created, if_lost=lost)
        print(f"{change.verb} {change.name}", flush=True)


def _apply(change: Change, created: dict[tuple[Location, str], str], *, if_lost: str) -> None:
    schedules = client(change.location, "ScheduleServiceClient")
    key = (change.location, change.name)
    resource = change.resource or created.get(key, "")
    match change.verb:
        case "create":
            body = message("Schedule", change.body)
            made = schedules.create_schedule(parent=change.location.parent, schedule=body)
            created[key] = created_name(made, change.location, if_lost=if_lost)
        case "update" | "end":
            from google.protobuf.field_mask_pb2 import FieldMask

            body = message("Schedule", {**change.body, "name": resource})
            mask = FieldMask(paths=map(snake, change.mask))
            updated = schedules.update_schedule(schedule=body, update_mask=mask)
            created_name(updated, change.location, if_lost=if_lost)
        case "pause":
            schedules.pause_schedule(name=resource)
        case "resume":
            resume(change.location, resource, catch_up=False)
        case "delete":
            schedules.delete_schedule(name=resource).result()


def resume(location: Location, resource: str, *, catch_up: bool) -> None:
    """Resume a schedule; with catch_up, also start the runs missed while it was paused."""
    request = {"name": resource, "catch_up": catch_up}
    client(location, "ScheduleServiceClient").resume_schedule(request=request)


def run_now(location: Location, schedule: dict[str, Any]) -> str:
    """Start the next run of a schedule now, without changing the schedule, and return the job's resource name.

    Raises:
        CallFailed: The service refused the call or could not be reached.
    """
    job = schedule["createPipelineJobRequest"]["pipelineJob"]
    identifier = job_id(job["pipelineSpec"])
    lost = f"{identifier} may be running: look at {location.run_page(identifier)} before you start it again"
    with calls(location, if_lost=lost):
        created = client(location, "PipelineServiceClient").create_pipeline_job(
            parent=location.parent,
            pipeline_job=message("PipelineJob", job),
            pipeline_job_id=identifier,
        )
    return created_name(created, location, if_lost=lost)


def _number(schedule: dict[str, Any]) -> str:
    return str(schedule["name"]).rpartition("/")[2]
