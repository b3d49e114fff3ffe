"""ModelDeployOp and ModelUndeployOp: models of the local registry at endpoints of the work folder."""

from dataclasses import replace
from typing import ClassVar

from localvertex._base.json_object import JsonObject
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.google_cloud.endpoints import LAUNCHER, call_of, local_endpoints, payload_of, write_operation
from localvertex.executors.launcher import LauncherExecutor, launcher_options
from localvertex.processes import logs


class ModelDeployExecutor(LauncherExecutor):
    """Starts the model's container, and deploys the model when it is healthy (deploy_model/remote_runner.py)."""

    name: ClassVar[str] = "model deploy"
    modules = frozenset({LAUNCHER.format("deploy_model")})

    def execute(self, attempt: Attempt) -> None:
        """Deploy the model; its process ends with the step, and starts again at the first prediction."""
        options = launcher_options(attempt.arguments())
        body = payload_of(options["payload"], attempt)
        call = call_of("deploy", str(body.pop("endpoint", "")), body)
        with local_endpoints(attempt) as endpoints:
            operation = endpoints(call)
            deployed = operation["response"]["deployedModel"]
            has_traffic = endpoints(replace(call, method="get"))["trafficSplit"].get(deployed["id"])
        if not has_traffic:
            attempt.context.warnings.add(
                f"{attempt.label}: without traffic_split the endpoint's traffic stays as it is, so this model gets "
                'none; set traffic_split={"0": "100"}'
            )
        write_operation(attempt, options, operation)
        model = f"{deployed['model']}@{deployed['modelVersionId']}"
        logs.add(attempt.log, f"deployed {model} as {deployed['id']} to the endpoint {call.endpoint_id}")
        attempt.report_exit(0)


class ModelUndeployExecutor(LauncherExecutor):
    """Undeploys the first deployed model of a version (undeploy_model/remote_runner.py of GCPC 2.22)."""

    name: ClassVar[str] = "model undeploy"
    modules = frozenset({LAUNCHER.format("undeploy_model")})

    def execute(self, attempt: Attempt) -> None:
        """Undeploy the model."""
        options = launcher_options(attempt.arguments())
        payload = payload_of(options["payload"], attempt)
        endpoint, model = str(payload.get("endpoint", "")), str(payload.get("model", ""))
        body: JsonObject = {"traffic_split": payload["traffic_split"]} if "traffic_split" in payload else {}
        call = call_of("undeploy", endpoint, body)
        with local_endpoints(attempt) as endpoints:
            body["deployed_model_id"] = _deployed_id(endpoints(replace(call, method="get")), model)
            write_operation(attempt, options, endpoints(call))
        logs.add(attempt.log, f"undeployed {model} from the endpoint {call.endpoint_id}")
        attempt.report_exit(0)


def _deployed_id(endpoint: JsonObject, model: str) -> str:
    """Return the id of the first deployed model with a name, of any version if the name has none.

    Raises:
        TaskFailed: The endpoint has no such model.
    """
    name, _, version = model.partition("@")
    for each in endpoint.get("deployedModels", []):
        if each["model"] == name and version in ("", each["modelVersionId"]):
            return str(each["id"])
    raise TaskFailed(f"Model {model} not found at endpoint {endpoint['name']}.", is_retryable=False)
