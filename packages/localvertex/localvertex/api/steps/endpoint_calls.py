"""The endpoints of a work folder, called by steps in this process as others call them by HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.endpoints import Endpoints
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError
from localvertex.containers.serving.machine import Machine
from localvertex.errors import TaskFailed
from localvertex.executors import api_access
from localvertex.executors.api_access import EndpointCall


@contextmanager
def local_endpoints(machine: Machine, log: WriteLine) -> Iterator[api_access.Endpoints]:
    """Return the endpoints of the work folder; the processes that they start end with the block.

    Raises:
        TaskFailed: A request was refused.
        Cancelled: The run was stopped.
    """
    deployments = Deployments(machine, log)
    endpoints = Endpoints(EndpointRecords(machine.work_dir), deployments)

    def answer(call: EndpointCall) -> JsonObject:
        location = Location(project=call.project, region=call.region)
        request = Call(location=location, resource_id=call.endpoint_id, body=call.body)
        result: JsonObject = getattr(endpoints, call.method)(request)
        return result

    try:
        yield answer
    except ApiError as error:
        machine.processes.check_stopped()
        raise TaskFailed(f"{error.status.name}: {error}", is_retryable=False) from None
    except OSError as error:
        raise TaskFailed(f"the endpoints cannot be changed: {error}") from None
    finally:
        deployments.close()
