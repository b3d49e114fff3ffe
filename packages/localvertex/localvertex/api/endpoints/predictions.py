"""Predictions of an endpoint: requests that a deployed model with traffic answers."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from localvertex.api.endpoints import traffic
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.containers.serving.process import Answer, NotServing, ServingProcess
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.deployed import FOLDER

MAX_BYTES = 1_572_864
"""The service's limit of a request: 1.5 MiB."""

_MAX_SECONDS = 60.0
"""The service's limit of an answer from a shared public endpoint."""

_MAX_END_SECONDS = 10.0
"""How long the end of a process that no longer answers may take."""

_HTTP_BODY = "httpBody"

_STATUSES = {status.http_code: status for status in reversed(Status)}

_MAX_QUOTED = 2_000

_MAX_TYPE = 1_000
"""Characters of a media type."""

Resource = dict[str, Any]


class Predictions:
    """Answers predict and rawPredict.

    Args:
        records: The endpoints.
        deployments: The processes of their models.
    """

    def __init__(self, records: EndpointRecords, deployments: Deployments) -> None:
        self._records, self._deployments = records, deployments

    def predict(self, call: Call) -> Resource:
        """Send instances to a model, and return its predictions."""
        deployed, answer = self._send(call, _request_of(call.body), "application/json")
        content = _predictions_of(answer)
        number = deployed["modelVersionId"]
        return {
            "predictions": content["predictions"],
            "deployedModelId": deployed["id"],
            "model": deployed["model"],
            "modelVersionId": number,
            "modelDisplayName": self._display_name(deployed),
        } | ({"metadata": content["metadata"]} if isinstance(content.get("metadata"), dict) else {})

    def raw_predict(self, call: Call) -> Resource | Response:
        """Send a body to a model as it is, and return its answer as it is.

        Google's generated clients wrap the body in an HttpBody message, and get such a message back.
        """
        wrapped = call.body.get(_HTTP_BODY) if set(call.body) == {_HTTP_BODY} else None
        if not isinstance(wrapped, dict):
            deployed, answer = self._send(call, json.dumps(call.body).encode(), "application/json")
            if not 200 <= answer.code < 600:
                raise ApiError(Status.INTERNAL, f"the serving container answered with HTTP code {answer.code}")
            headers = {"X-Vertex-AI-Endpoint-Id": call.resource_id, "X-Vertex-AI-Deployed-Model-Id": deployed["id"]}
            return Response(
                answer.content, answer.code, headers=headers, media_type=answer.content_type or "application/json"
            )
        try:
            data = base64.b64decode(str(wrapped.get("data", "")), validate=True)
        except binascii.Error:
            raise invalid("httpBody.data is not base64") from None
        content_type = str(wrapped.get("contentType") or "application/json")
        if not (content_type.isascii() and content_type.isprintable() and len(content_type) <= _MAX_TYPE):
            raise invalid(f"httpBody.contentType {content_type[:100]!r} is not a media type")
        _, answer = self._send(call, data, content_type)
        if answer.code != 200:
            raise ApiError(_STATUSES.get(answer.code, Status.INTERNAL), _quote(answer))
        return {"contentType": answer.content_type, "data": base64.b64encode(answer.content).decode()}

    def _send(self, call: Call, body: bytes, content_type: str) -> tuple[Resource, Answer]:
        """Send a body to one of the deployed models; return it and its answer.

        Raises:
            ApiError: The body is too large, no model has traffic, or there was no answer.
        """
        _check_size(body)
        name = call.location.child(FOLDER, call.resource_id)
        endpoint = self._records.find(name)
        chosen = traffic.choose(endpoint["trafficSplit"], name)
        deployed: Resource = next(each for each in endpoint["deployedModels"] if each["id"] == chosen)
        return deployed, ask(lambda: self._deployments.process_of(name, deployed), body, content_type, chosen)

    def _display_name(self, deployed: Mapping[str, str]) -> str:
        versions = ModelVersions.of(self._records.work_dir, deployed["model"].rpartition("/")[2])
        return str(versions.shared.get("display_name", "")) if versions.numbers else ""


def _request_of(body: Mapping[str, Any]) -> bytes:
    """Return the request to a model with the instances and parameters of a call.

    Raises:
        ApiError: It has no instances, or something else.
    """
    unknown = set(body) - {"instances", "parameters", "labels"}
    instances = body.get("instances")
    if unknown or not isinstance(instances, list) or not instances:
        raise invalid("expected instances, a list that is not empty, and optional parameters")
    given = {name: body[name] for name in ("parameters",) if body.get(name) is not None}
    return json.dumps({"instances": instances} | given).encode()


def _check_size(body: bytes) -> None:
    """Check the size of a request.

    Raises:
        ApiError: The service would refuse it.
    """
    if len(body) > MAX_BYTES:
        raise invalid(f"the request has {len(body)} bytes; the service accepts up to {MAX_BYTES}")


def ask(serving: Callable[[], ServingProcess], body: bytes, content_type: str, deployed_id: str) -> Answer:
    """Return the answer of a deployed model; ask once more, a new process, when this one has ended.

    Args:
        serving: Returns the process; starts it if it does not run.
        body: The request.
        content_type: Its media type.
        deployed_id: The model's name in errors.

    Raises:
        ApiError: There was no answer.
    """
    try:
        process = serving()
        try:
            return process.predict(body, content_type, seconds=_MAX_SECONDS)
        except NotServing:
            if not process.ends_within(_MAX_END_SECONDS):
                raise
        return serving().predict(body, content_type, seconds=_MAX_SECONDS)
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
