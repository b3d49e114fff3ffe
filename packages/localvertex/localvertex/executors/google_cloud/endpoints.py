"""The local endpoints, called as the launchers call the service."""

import re
from contextlib import AbstractContextManager
from typing import Literal

from localvertex._base.compiled.payload import without_empty
from localvertex._base.json_object import JsonObject
from localvertex.errors import TaskFailed
from localvertex.executors.api_access import EndpointCall, Endpoints
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import launcher_payload, write_resource
from localvertex.processes import logs

LAUNCHER = "google_cloud_pipeline_components.container.v1.endpoint.{}.launcher"
"""The module of an operation."""

_NAME = re.compile(
    r"(?P<name>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/endpoints/(?P<id>[A-Za-z0-9_-]+))"
)


def payload_of(template: str, attempt: Attempt) -> JsonObject:
    """Return a launcher's payload without the fields that it does not send."""
    payload: JsonObject = without_empty(launcher_payload(template, attempt))
    return payload


def local_endpoints(attempt: Attempt) -> AbstractContextManager[Endpoints]:
    """Return the endpoints of the work folder; the processes that they start end with the step.

    Raises:
        TaskFailed: The run was started without an API.
    """
    api = attempt.context.api
    if api is None:
        raise TaskFailed("the steps of this run reach no endpoints", is_retryable=False)
    return api.endpoints(attempt.context.machine, lambda text: logs.add(attempt.log, text))


def call_of(
    method: Literal["create", "get", "deploy", "undeploy", "delete"], name: str, body: JsonObject
) -> EndpointCall:
    """Build a call about an endpoint.

    Raises:
        TaskFailed: The name is not one of an endpoint.
    """
    match = _NAME.fullmatch(name)
    if not match:
        expected = "projects/[project_id]/locations/[location]/endpoints/[endpoint_id]"
        raise TaskFailed(f"Invalid endpoint name: {name}. Expect: {expected}.", is_retryable=False)
    project, region, endpoint_id = match["project"], match["location"], match["id"]
    return EndpointCall(method=method, project=project, region=region, endpoint_id=endpoint_id, body=body)


def write_operation(attempt: Attempt, options: dict[str, str], operation: JsonObject) -> None:
    """Write the `gcp_resources` of a long-running operation, as lro_remote_runner.py of GCPC 2.22 does."""
    name = str(operation["name"])
    write_resource(attempt, options, "VertexLro", name, name.split("/")[3])
