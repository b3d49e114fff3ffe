"""Endpoints and their deployed models, through Vertex AI's API."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from components import vertex_clients
from components.registry.labelled import Labelled
from components.registry.labels import PROJECT_LABEL
from components.vertex_clients import call, wait_for
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError

_CREATE_SECONDS = 600.0
_DEPLOY_SECONDS = 7200.0
"""Vertex AI itself gives up after less; a large model is copied to each replica first."""
_UNDEPLOY_SECONDS = 1800.0


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A version on an endpoint."""

    id: str
    """Id of the DeployedModel."""
    model: str
    """Resource name of the model, without a version."""
    number: str
    """Number of the version."""
    traffic: int
    """Percentage of the requests that it answers."""
    created: float
    """When it was deployed, in seconds since 1970."""

    @property
    def version(self) -> str:
        """Return the resource name of the version."""
        return f"{self.model}@{self.number}"

    def is_of(self, model: str) -> bool:
        """Return whether it is a version of a model; names may have the project's number or its id."""
        return self.model.rpartition("/")[2] == model.rpartition("/")[2]


class Endpoints(Labelled):
    """The endpoints of a region."""

    def find(self, display_name: str) -> str:
        """Return the resource name of the pipeline's endpoint with this display name, empty if there is none.

        Raises:
            UserError: There are several, or only others' endpoints have this name.
        """
        named = self.named(self._client.list_endpoints, display_name, what="the endpoints cannot be listed")
        found = self.own(named, display_name, kind="endpoints")
        if named and not found:
            raise UserError(
                f"an endpoint {display_name!r} exists in {self.region} without the label {'='.join(PROJECT_LABEL)}:"
                f" {named[0].name}; give another deploy_endpoint, or add the label if this pipeline may use it"
            )
        return found

    def find_or_create(self, display_name: str) -> str:
        """Return the resource name of the endpoint; its id follows from the name, so that no two are created.

        Raises:
            UserError: See `find`.
        """
        from google.api_core import exceptions as api

        if found := self.find(display_name):
            return found
        what = f"the endpoint {display_name!r} cannot be created"
        endpoint_id = f"image-training-{hashlib.sha256(display_name.encode()).hexdigest()[:16]}"
        request = {
            "parent": self.parent,
            "endpoint": {"display_name": display_name, "labels": dict([PROJECT_LABEL])},
            "endpoint_id": endpoint_id,
        }

        def create(**options: Any) -> Any:
            try:
                return self._client.create_endpoint(**options)
            except api.Conflict:
                # An attempt that was killed, or another run, has created it.
                return None

        operation = call(create, request, what=what)
        if operation is None:
            return self._created_before(f"{self.parent}/endpoints/{endpoint_id}", display_name)
        return str(wait_for(operation, what=what, seconds=_CREATE_SECONDS).name)

    def _created_before(self, endpoint: str, display_name: str) -> str:
        found = call(self._client.get_endpoint, {"name": endpoint}, what=f"{endpoint} cannot be read")
        key, value = PROJECT_LABEL
        if (found.display_name, found.labels.get(key)) != (display_name, value):
            raise UserError(
                f"{endpoint} was made for {display_name!r}, and is {found.display_name!r} now, or without the label"
                f" {key}={value}; restore both, or choose another deploy_endpoint"
            )
        return endpoint

    def deployed_models(self, endpoint: str) -> list[Deployed]:
        """Return the models that are deployed to an endpoint, the oldest first."""
        found = call(self._client.get_endpoint, {"name": endpoint}, what=f"{endpoint} cannot be read")
        split = dict(found.traffic_split)
        listed = [
            Deployed(
                id=each.id,
                model=each.model.partition("@")[0],
                number=each.model_version_id or each.model.partition("@")[2],
                traffic=split.get(each.id, 0),
                created=each.create_time.timestamp() if each.create_time else 0.0,
            )
            for each in found.deployed_models
        ]
        return sorted(listed, key=lambda each: each.created)

    def deploy(
        self, endpoint: str, version: str, *, name: str, resources: Mapping[str, Any], service_account: str
    ) -> None:
        """Deploy a version with all traffic.

        Args:
            endpoint: Its resource name.
            version: Resource name with the number.
            name: Display name of the deployed model.
            resources: The field `dedicated_resources`.
            service_account: Service account of the replicas; empty for the default one.
        """
        what = f"{version} cannot be deployed to {endpoint}"
        request = {
            "endpoint": endpoint,
            "deployed_model": {
                # A second attempt, while the first one is under way, is refused instead of doubling the replicas.
                "id": _id(version),
                "model": version,
                "display_name": name,
                "dedicated_resources": dict(resources),
                "service_account": service_account,
            },
            # 0 is the version that is deployed; a deployed model that is not listed gets no traffic.
            "traffic_split": {"0": 100},
        }
        operation = call(self._deploy_model, request, what=what, is_repeatable=False)
        try:
            wait_for(operation, what=what, seconds=_DEPLOY_SECONDS)
        except Exception:
            self._cancel(operation.operation.name)
            raise

    def _deploy_model(self, *, request: Any, timeout: float, retry: Any) -> Any:
        # localvertex answers when the server of the model is healthy.
        return self._client.deploy_model(request=request, timeout=max(timeout, _UNDEPLOY_SECONDS), retry=retry)

    def _cancel(self, operation: str) -> None:
        """Cancel a deployment that is no longer waited for: it would get all traffic untried, and cost money."""
        try:
            call(self._client.cancel_operation, {"name": operation}, what=f"{operation} cannot be cancelled")
        except (UserError, TrainingError) as error:
            print(f"warning: {error}; check it, because its replicas cost money")

    def route(self, endpoint: str, traffic: Mapping[str, int]) -> None:
        """Set the traffic split of an endpoint: id of the deployed model -> percentage."""
        request = {
            "endpoint": {"name": endpoint, "traffic_split": dict(traffic)},
            "update_mask": {"paths": ["traffic_split"]},
        }
        call(self._client.update_endpoint, request, what=f"the traffic of {endpoint} cannot be changed")

    def undeploy(self, endpoint: str, deployed: Deployed, traffic: Mapping[str, int]) -> None:
        """Undeploy a version, and set the traffic of the others in the same call."""
        what = f"{deployed.version} cannot be undeployed from {endpoint}"
        request = {"endpoint": endpoint, "deployed_model_id": deployed.id, "traffic_split": dict(traffic)}
        wait_for(call(self._client.undeploy_model, request, what=what), what=what, seconds=_UNDEPLOY_SECONDS)

    def predict(self, endpoint: str, instances: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return the id of the deployed model that answered, and its answers."""
        from google.protobuf import json_format, struct_pb2

        values = [json_format.ParseDict(each, struct_pb2.Value()) for each in instances]
        client = vertex_clients.predictions(self.region, self.root)

        def predict(*, request: Any, **options: Any) -> Any:
            # A list of values is not accepted in a request that is a dict.
            return client.predict(endpoint=endpoint, instances=values, **options)

        response = call(predict, None, what=f"{endpoint}: prediction request failed")
        content = json_format.MessageToDict(type(response).pb(response))
        return str(response.deployed_model_id), list(content.get("predictions", []))

    @cached_property
    def _client(self) -> Any:
        return vertex_clients.endpoints(self.region, self.root)


def _id(version: str) -> str:
    """Return the id of a deployed model, of up to ten digits, for a version."""
    return str(10**9 + int(hashlib.sha256(version.encode()).hexdigest()[:12], 16) % 10**9)
