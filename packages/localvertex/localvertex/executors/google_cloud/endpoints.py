"""What the operations of endpoints share: the local endpoints, called as their launchers call the service."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import launcher_payload, without_empty, write_resource
from localvertex.processes import logs
from localvertex_base import extras

if TYPE_CHECKING:
    from localvertex.api.endpoints.endpoints import Endpoints
    from localvertex.api.http.call import Call

LAUNCHER = "google_cloud_pipeline_components.container.v1.endpoint.{}.launcher"
"""The module of an operation."""

_NAME = re.compile(
    r"(?P<name>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/endpoints/(?P<id>[A-Za-z0-9_-]+))"
)


def payload_of(template: str, attempt: Attempt) -> dict[str, Any]:
    """Return a launcher's payload without what it does not send."""
    payload: dict[str, Any] = without_empty(launcher_payload(template, attempt))
    return payload


@contextmanager
def local_endpoints(attempt: Attempt) -> Iterator["Endpoints"]:
    """Return the endpoints of the work directory; the processes that they start end with the step.

    Raises:
        TaskFailed: A request was refused.
        Cancelled: The run was stopped.
    """
    # The messages of the API are imported only by the steps that need them.
    from localvertex.api.endpoints.deployments import Deployments
    from localvertex.api.endpoints.endpoints import Endpoints
    from localvertex.api.endpoints.records import Records
    from localvertex.api.http.errors import ApiError
    from localvertex.api.http.operations import Operations
    from localvertex.api.http.store import Store

    context = attempt.context
    deployments = Deployments(context.machine, lambda text: logs.add(attempt.log, text))
    try:
        yield Endpoints(Records(context.work_dir), Operations(Store(context.work_dir)), deployments)
    except ApiError as error:
        context.processes.check_stopped()
        raise TaskFailed(f"{error.status.name}: {error}", is_retryable=False) from None
    except ImportError as error:
        text = f"the operations of endpoints need {error.name}; {extras.install('serve')}"
        raise TaskFailed(text, is_retryable=False) from None
    except OSError as error:
        raise TaskFailed(f"the endpoints cannot be changed: {error}") from None
    finally:
        deployments.close()


def call_of(name: str, body: dict[str, Any]) -> "Call":
    """Build a call about an endpoint.

    Raises:
        TaskFailed: The name is not one of an endpoint.
    """
    from localvertex.api.http.call import Call, Location

    match = _NAME.fullmatch(name)
    if not match:
        expected = "projects/[project_id]/locations/[location]/endpoints/[endpoint_id]"
        raise TaskFailed(f"Invalid endpoint name: {name}. Expect: {expected}.", is_retryable=False)
    location = Location(project=match["project"], region=match["location"])
    return Call(version="v1", location=location, resource_id=match["id"], body=body)


def write_operation(attempt: Attempt, options: dict[str, str], operation: dict[str, Any]) -> None:
    """Write the `gcp_resources` of a long-running operation, as lro_remote_runner.py of GCPC 2.22 does."""
    name = str(operation["name"])
    write_resource(attempt, options, "VertexLro", name, name.split("/")[3])
