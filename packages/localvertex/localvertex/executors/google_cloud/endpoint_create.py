"""EndpointCreateOp and EndpointDeleteOp: endpoints of the work folder."""

from typing import ClassVar

from localvertex.executors.attempt import Attempt
from localvertex.executors.google_cloud.endpoints import LAUNCHER, call_of, local_endpoints, payload_of, write_operation
from localvertex.executors.launcher import LauncherExecutor, launcher_options, target, warn_of_location, write_artifact
from localvertex.processes import logs


class EndpointCreateExecutor(LauncherExecutor):
    """Creates an endpoint, and writes its artifact (create_endpoint/remote_runner.py of GCPC 2.22)."""

    name: ClassVar[str] = "endpoint create"
    modules = frozenset({LAUNCHER.format("create_endpoint")})
    required = ("payload", "gcp_resources", "executor_input")

    def execute(self, attempt: Attempt) -> None:
        """Create the endpoint."""
        options = launcher_options(attempt.arguments())
        project, location = target(options, attempt)
        warn_of_location(location, attempt, done="the endpoint is created in", operation="EndpointCreateOp")
        name = f"projects/{project}/locations/{location}/endpoints/new"
        call = call_of("create", name, payload_of(options["payload"], attempt))
        with local_endpoints(attempt) as endpoints:
            operation = endpoints(call)
        write_operation(attempt, options, operation)
        name = operation["response"]["name"]
        write_artifact(attempt, "endpoint", name, location)
        logs.add(attempt.log, f"created {name}")
        attempt.report_exit(0)


class EndpointDeleteExecutor(LauncherExecutor):
    """Deletes an endpoint without deployed models (delete_endpoint/remote_runner.py of GCPC 2.22)."""

    name: ClassVar[str] = "endpoint delete"
    modules = frozenset({LAUNCHER.format("delete_endpoint")})

    def execute(self, attempt: Attempt) -> None:
        """Delete the endpoint."""
        options = launcher_options(attempt.arguments())
        call = call_of("delete", str(payload_of(options["payload"], attempt).get("endpoint", "")), {})
        with local_endpoints(attempt) as endpoints:
            write_operation(attempt, options, endpoints(call))
        logs.add(attempt.log, f"deleted the endpoint {call.endpoint_id}")
        attempt.report_exit(0)
