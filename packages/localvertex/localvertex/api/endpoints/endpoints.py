"""endpoints: where models are deployed, whose processes answer predictions."""

import re
from collections.abc import Callable

from localvertex._base.userinput.spelling import camel
from localvertex.api.endpoints import traffic
from localvertex.api.endpoints.deployed_model import new_deployed_model
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.listing import page
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import ID, Damaged
from localvertex.store import record
from localvertex.store.models.deployed import FOLDER

_CHANGEABLE = ("displayName", "description", "labels", "trafficSplit", "clientConnectionConfig")

_OUTPUT_ONLY = ("name", "deployedModels", "createTime", "updateTime", "etag")

_ENDPOINT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

_FILTER_FIELDS = {"endpoint"}
"""Fields that exist in filters only."""


class Endpoints:
    """The endpoints of the API.

    Args:
        records: Where they are kept.
        deployments: The processes of the models that are deployed to them; closed by its owner.
    """

    def __init__(self, records: EndpointRecords, deployments: Deployments) -> None:
        self.records, self._deployments = records, deployments

    def create(self, call: Call) -> Resource:
        """Create an endpoint without a model."""
        body = messages.parse("Endpoint", call.body)
        if not body.get("displayName"):
            raise invalid("displayName is missing")
        if body.get("trafficSplit"):
            raise invalid("trafficSplit: a new endpoint has no model that could get traffic")
        wanted = call.query.get("endpointId", "")
        if wanted and not (_ENDPOINT_ID.fullmatch(wanted) and ID.fullmatch(wanted)):
            raise invalid(f"endpointId {wanted[:100]!r}: expected up to 63 lower-case letters, digits and '-'")
        endpoint_id = wanted or record.new_number()
        name, now = call.location.child(FOLDER, endpoint_id), record.now()
        given = {key: value for key, value in body.items() if key not in _OUTPUT_ONLY}
        endpoint = {"name": name, **given, "trafficSplit": {}, "createTime": now, "updateTime": now}
        with self.records.locked():
            if endpoint_id in self.records.ids:
                raise ApiError(Status.ALREADY_EXISTS, f"{name} already exists")
            self.records.write(endpoint_id, endpoint)
        return finished_operation(call, "CreateEndpointOperationMetadata", "Endpoint", endpoint)

    def get(self, call: Call) -> Resource:
        """Return one endpoint."""
        name = _name(call)
        try:
            found = self.records.read(call.resource_id)
        except Damaged as error:
            return _stand_in(call, call.resource_id, str(error))
        if found is None or found["name"] != name:
            raise not_found(name)
        return found

    def list_all(self, call: Call) -> Resource:
        """List the endpoints of a location."""
        fields = messages.field_names("Endpoint") | _FILTER_FIELDS
        found: list[Resource] = []
        for each in self.records.ids:
            try:
                content = self.records.read(each)
            except Damaged as error:
                content = _stand_in(call, each, str(error))
            found += [] if content is None else [content]
        return page(call, FOLDER, found, fields=fields, searchable=_searchable)

    def patch(self, call: Call) -> Resource:
        """Change the fields that the mask names."""
        body = messages.parse("Endpoint", call.body)
        named = [camel(each.strip()) for each in call.query.get("updateMask", "").split(",")]
        if wrong := [each for each in named if each not in _CHANGEABLE]:
            raise invalid(f"updateMask: {wrong[0][:100]!r}: expected some of {', '.join(_CHANGEABLE)}")
        if "displayName" in named and not body.get("displayName"):
            raise invalid("displayName is missing")

        def change(endpoint: Resource) -> None:
            for each in named:
                endpoint.pop(each, None)
            endpoint |= {each: body[each] for each in named if each in body}
            endpoint["trafficSplit"] = traffic.check(endpoint.get("trafficSplit", {}), _deployed_ids(endpoint))

        return self._change(_name(call), change)

    def deploy(self, call: Call) -> Resource:
        """Deploy a version of a model: start its container, wait until it is healthy, and give it traffic."""
        name = _name(call)
        body = messages.normalise("DeployModelRequest", call.body)
        split = body.get("trafficSplit", {})
        deployed = new_deployed_model(self.records, body.get("deployedModel", {}), call.location)
        self._deployments.check(deployed.content)
        for text in deployed.warnings:
            self._deployments.log(f"endpoints/{call.resource_id}: warning: {text}")

        def change(endpoint: Resource) -> None:
            endpoint["deployedModels"] = [*endpoint.get("deployedModels", []), deployed.message]
            ids = _deployed_ids(endpoint)
            if len(ids) != len(set(ids)):
                raise ApiError(Status.ALREADY_EXISTS, f"{name} has a deployed model {deployed.message['id']!r}")
            endpoint["trafficSplit"] = traffic.with_deployed(
                endpoint["trafficSplit"], split, deployed.message["id"], ids
            )

        # A request that will be refused starts nothing.
        change(self.records.find(name))
        self._deployments.process_of(name, deployed.message, is_new=True)
        try:
            self._change(name, change)
        except BaseException:
            self._deployments.stop(name, deployed.message["id"])
            raise
        content = {"deployedModel": deployed.message}
        return finished_operation(call, "DeployModelOperationMetadata", "DeployModelResponse", content)

    def undeploy(self, call: Call) -> Resource:
        """Undeploy a model that has no traffic, or whose traffic the request gives to others; end its process."""
        body = messages.normalise("UndeployModelRequest", call.body)
        name, removed = _name(call), body.get("deployedModelId", "")

        def change(endpoint: Resource) -> None:
            _deployed(endpoint, removed)
            left = [each for each in endpoint["deployedModels"] if each["id"] != removed]
            endpoint["trafficSplit"] = traffic.without(
                endpoint["trafficSplit"], body.get("trafficSplit", {}), removed, [each["id"] for each in left]
            )
            endpoint["deployedModels"] = left

        self._change(name, change)
        self._deployments.stop(name, removed)
        return finished_operation(call, "UndeployModelOperationMetadata", "UndeployModelResponse")

    def delete(self, call: Call) -> Resource:
        """Delete an endpoint without deployed models, even if its record is damaged."""
        name = _name(call)
        with self.records.locked():
            try:
                found = self.records.read(call.resource_id)
            except Damaged:
                found = {"name": name}
            if found is None or found["name"] != name:
                raise not_found(name)
            if ids := _deployed_ids(found):
                text = f"{name} has deployed models ({', '.join(ids)}); undeploy them first"
                raise ApiError(Status.FAILED_PRECONDITION, text)
            self.records.remove(call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def _change(self, name: str, change: Callable[[Resource], None]) -> Resource:
        """Change an endpoint under the lock, and return it."""
        with self.records.locked():
            endpoint = self.records.find(name)
            change(endpoint)
            endpoint["updateTime"] = record.now()
            self.records.write(name.rpartition("/")[2], endpoint)
        return endpoint


def _name(call: Call) -> str:
    return call.location.child(FOLDER, call.resource_id)


def _deployed_ids(endpoint: Resource) -> list[str]:
    return [each["id"] for each in endpoint.get("deployedModels", [])]


def _deployed(endpoint: Resource, deployed_id: str) -> Resource:
    """Return a deployed model.

    Raises:
        ApiError: The endpoint does not have it.
    """
    for each in endpoint.get("deployedModels", []):
        if each["id"] == deployed_id:
            found: Resource = each
            return found
    raise not_found(f"deployed model {deployed_id[:100]!r} of {endpoint['name']}")


def _searchable(endpoint: Resource) -> Resource:
    return endpoint | {"endpoint": endpoint["name"].rpartition("/")[2]}


def _stand_in(call: Call, endpoint_id: str, reason: str) -> Resource:
    """Build the stand-in for an endpoint whose record is damaged."""
    text, name = f"its record is damaged ({reason}); delete it", call.location.child(FOLDER, endpoint_id)
    return {"name": name, "displayName": endpoint_id, "description": text, "trafficSplit": {}}
