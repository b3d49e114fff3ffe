"""Endpoints through the real SDK: real servers, real processes."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from localvertex_tests.support import serving

from vertex_testing.server import Server


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
    # Other machines reach no server here that knows the variable.
    assert values["AIP_HTTP_HOST"] == "127.0.0.1"
    assert (found.model_resource_name, found.model_version_id) == (model.resource_name, "1")
    (deployed,) = endpoint.list_models()
    assert (found.deployed_model_id, endpoint.traffic_split) == (deployed.id, {deployed.id: 100})
    with pytest.raises(RefreshError, match="the SDK sends this call to Google"):
        endpoint.raw_predict(b'{"instances": [1]}', {"Content-Type": "application/json"})
    endpoint.undeploy_all()
    with pytest.raises(exceptions.BadRequest, match="no deployed model with traffic"):
        endpoint.predict(instances=[1])
    endpoint.delete()
    with pytest.raises(exceptions.NotFound):
        aiplatform.Endpoint(endpoint.resource_name).list_models()


@pytest.mark.slow
def test_a_new_version_takes_over_and_the_old_one_is_undeployed(server: Server, sdk: Any, upload: Any) -> None:
    aiplatform = sdk(server)
    endpoint = aiplatform.Endpoint.create(display_name="live", labels={"managed-by": "tests"})
    (found,) = aiplatform.Endpoint.list(filter="labels.managed-by=tests")
    assert found.resource_name == endpoint.resource_name
    first = upload("first")
    second = upload("second", parent_model=first.resource_name)
    endpoint.deploy(first, machine_type="n1-standard-2")
    endpoint.deploy(second, machine_type="n1-standard-2", traffic_percentage=40)
    old, new = sorted(endpoint.list_models(), key=lambda each: each.model_version_id)
    assert endpoint.traffic_split == {old.id: 60, new.id: 40}
    endpoint.update(display_name="renamed", traffic_split={old.id: 0, new.id: 100})
    assert endpoint.predict(instances=[1]).predictions[0]["by"]["arguments"] == "second"
    endpoint.undeploy(old.id)
    assert [each.id for each in endpoint.list_models()] == [new.id]
    assert (endpoint.display_name, endpoint.traffic_split) == ("renamed", {new.id: 100})
