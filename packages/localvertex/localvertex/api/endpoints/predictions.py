"""Predictions of an endpoint: requests that a deployed model with traffic answers."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from localvertex.api.endpoints import traffic
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.api.rest.records import Resource
from localvertex.containers.serving.container import ServingContainer
from localvertex.containers.serving.process import Answer, NotServing, ServingProcess
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.deployed import FOLDER

MAX_BYTES = 1_572_864
"""The service's limit of a request: 1.5 MiB."""

_MAX_SECONDS = 60.0
"""The service's limit of an answer from a shared public endpoint."""

_MAX_END_SECONDS = 10.0
"""How long the end of a process that no longer answers may take."""

_TRIED = "projects/local-project/locations/us-central1/endpoints/.tried"
"""No endpoint of a user has such a name."""

_STATUSES = {status.http_code: status for status in reversed(Status)}

_MAX_QUOTED = 2_000


class Predictions:
    """Answers predict.

    Args:
        records: The endpoints.
        deployments: The processes of their models.
    """

    def __init__(self, records: EndpointRecords, deployments: Deployments) -> None:
        self._records, self._deployments = records, deployments

    def predict(self, call: Call) -> Resource:
        """Send instances to a model, and return its predictions."""
        body, name = _request_of(call.body), call.location.child(FOLDER, call.resource_id)
        endpoint = self._records.find(name)
        chosen = traffic.choose(endpoint["trafficSplit"], name)
        deployed: Resource = next(each for each in endpoint["deployedModels"] if each["id"] == chosen)
        content = _predictions_of(ask(lambda: self._deployments.process_of(name, deployed), body, chosen))
        versions = ModelVersions.of(self._records.work_dir, deployed["model"].rpartition("/")[2])
        return {
            "predictions": content["predictions"],
            "deployedModelId": deployed["id"],
            "model": deployed["model"],
            "modelVersionId": deployed["modelVersionId"],
            "modelDisplayName": str(versions.shared.get("display_name", "")) if versions.numbers else "",
        } | ({"metadata": content["metadata"]} if isinstance(content.get("metadata"), dict) else {})

    def container(self, content: Resource) -> ServingContainer:
        """Return the container of a version.

        Raises:
            ApiError: It has none that runs here.
        """
        return self._deployments.check(content)

    def try_version(self, model: str, number: str, content: Resource, instance: Any) -> Any:
        """Return the prediction of a version that need not be deployed; of such versions one has a process.

        Args:
            model: The resource name of the model.
            number: Number of the version.
            content: The version, as the registry has it.
            instance: An instance, as the container takes it.

        Raises:
            ApiError: It does not run here, or refuses the instance.
        """
        created = f"{model}@{number} {content.get('create_time')}"
        deployed = {"id": "tried", "model": model, "modelVersionId": number, "createTime": created}
        body = json.dumps({"instances": [instance]}).encode()
        answer = ask(lambda: self._deployments.process_of(_TRIED, deployed, is_new=True), body, model)
        return next(iter(_predictions_of(answer)["predictions"]), None)


def _request_of(body: Mapping[str, Any]) -> bytes:
    """Return the request to a model with the instances and parameters of a call.

    Raises:
        ApiError: It has no instances, or something else, or the service would refuse its size.
    """
    unknown = set(body) - {"instances", "parameters", "labels"}
    instances = body.get("instances")
    if unknown or not isinstance(instances, list) or not instances:
        raise invalid("expected instances, a list that is not empty, and optional parameters")
    given = {"parameters": body["parameters"]} if body.get("parameters") is not None else {}
    request = json.dumps({"instances": instances} | given).encode()
    if len(request) > MAX_BYTES:
        raise invalid(f"the request has {len(request)} bytes; the service accepts up to {MAX_BYTES}")
    return request


def ask(serving: Callable[[], ServingProcess], body: bytes, deployed_id: str) -> Answer:
    """Return the answer of a deployed model; ask once more, a new process, when this one has ended.

    Args:
        serving: Returns the process; starts it if it does not run.
        body: The request.
        deployed_id: The model's name in errors.

    Raises:
        ApiError: There was no answer.
    """
    try:
        process = serving()
        try:
            return process.predict(body, seconds=_MAX_SECONDS)
        except NotServing:
            if not process.ends_within(_MAX_END_SECONDS):
                raise
        return serving().predict(body, seconds=_MAX_SECONDS)
    except TimeoutError:
        text = f"deployed model {deployed_id} did not answer within {_MAX_SECONDS:g} s"
        raise ApiError(Status.DEADLINE_EXCEEDED, text) from None
    except NotServing as error:
        raise ApiError(Status.UNAVAILABLE, f"deployed model {deployed_id}: {error}") from None


def _predictions_of(answer: Answer) -> Resource:
    """Return the content of a successful answer.

    Raises:
        ApiError: It is an error, or has no list of predictions.
    """
    if answer.code != 200:
        raise ApiError(_STATUSES.get(answer.code, Status.INTERNAL), _quote(answer))
    try:
        content = json.loads(answer.content)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("predictions"), list):
        text = "the serving container must answer with a JSON object that has a list 'predictions', found: "
        raise ApiError(Status.INTERNAL, text + _quote(answer))
    return content


def _quote(answer: Answer) -> str:
    return answer.content[:_MAX_QUOTED].decode(errors="replace") or f"HTTP code {answer.code} without a text"
