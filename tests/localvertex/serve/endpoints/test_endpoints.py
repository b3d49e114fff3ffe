"""Endpoints through the real SDK: real servers, real processes."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions

from tests.support import serving
from tests.support.server import Server


@pytest.fixture
def upload(server: Server, sdk: Any) -> Iterator[Any]:
    """Upload models whose container is the test's server, with these arguments."""
    aiplatform = sdk(server)

    def add(*words: str, **more: Any) -> Any:
        return aiplatform.Model.upload(
            **{
                "display_name": "served",
                "serving_container_image_uri": "serving:1",
                "serving_container_command": ["python", "-P", serving.__file__],
                "serving_container_args": [*words],
                "serving_container_health_route": "/health",
                "serving_container_predict_route": "/predict",
            }
            | more
        )

    yield add
    for endpoint in aiplatform.Endpoint.list():
        endpoint.delete(force=True)


def test_an_endpoint_serves_a_model_until_it_is_undeployed(server: Server, sdk: Any, upload: Any) -> None:
    aiplatform = sdk(server)
    endpoint = aiplatform.Endpoint.create(display_name="live", labels={"team": "v"})
    model = upload("$(AIP_ENDPOINT_ID)", "$$(HOME)", serving_container_environment_variables={"OWN_NAME": "x"})
    model.deploy(endpoint=endpoint, machine_type="n1-standard-2", min_replica_count=1, max_replica_count=1)
    found = endpoint.predict(instances=[1, "two"], parameters={"k": 3})
    assert [each["instance"] for each in found.predictions] == [1, "two"]
    values = found.predictions[0]["by"]
    assert values["OWN_NAME"] == "x"
    assert values["arguments"] == f"{endpoint.name} $(HOME)"
    assert values["AIP_MACHINE_TYPE"] == "n1-standard-2"
    assert (found.model_resource_name, found.model_version_id) == (model.resource_name, "1")
    (deployed,) = endpoint.list_models()
    assert (found.deployed_model_id, endpoint.traffic_split) == (deployed.id, {deployed.id: 100})
    endpoint.undeploy_all()
    with pytest.raises(exceptions.BadRequest, match="no deployed model with traffic"):
        endpoint.predict(instances=[1])
    endpoint.delete()
    with pytest.raises(exceptions.NotFound):
        aiplatform.Endpoint(endpoint.resource_name).list_models()
