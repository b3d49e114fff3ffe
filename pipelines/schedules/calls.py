"""The calls of the schedule service; the SDK's own class lacks half of the fields of a job."""

from collections.abc import Iterable
from typing import Any

from localvertex_base.userinput.spelling import snake
from pipelines.calls import calls, created_name
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
            schedules.resume_schedule(name=resource)
        case "delete":
            schedules.delete_schedule(name=resource).result()
