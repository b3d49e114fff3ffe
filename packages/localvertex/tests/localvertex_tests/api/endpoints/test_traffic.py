"""Traffic splits by the service's rules."""

from collections import Counter
from typing import Any

import pytest

from localvertex.api.endpoints import traffic
from localvertex.api.rest.errors import ApiError


@pytest.mark.parametrize(
    ("split", "text"),
    [
        ({"1": 60, "2": 30}, "must add up to 100, found 90"),
        ({"1": 101, "2": -1}, "negative"),
        ({"1": 50, "3": 50}, "'3' is not deployed to the endpoint; deployed: 1, 2"),
        ({"0": 100}, "'0' is not deployed"),
    ],
)
def test_a_split_that_the_service_refuses(split: dict[str, int], text: str) -> None:
    with pytest.raises(ApiError, match=text):
        traffic.check(split, ["1", "2"])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [({}, {"1": 100}), ({"0": 100}, {"2": 100}), ({"0": 10, "1": 90}, {"2": 10, "1": 90}), ({"2": 100}, {"2": 100})],
)
def test_a_deployment_gets_the_traffic_that_it_asks_for(wanted: dict[str, int], expected: dict[str, int]) -> None:
    assert traffic.with_deployed({"1": 100}, wanted, "2", ["1", "2"]) == expected


def test_a_model_with_traffic_is_undeployed_only_with_a_new_split() -> None:
    current = {"1": 90, "2": 10}
    with pytest.raises(ApiError, match="deployed model 1 has 90% of the traffic"):
        traffic.without(current, {}, "1", ["2"])
    with pytest.raises(ApiError, match="must add up to 100"):
        traffic.without(current, {"2": 90}, "1", ["2"])
    with pytest.raises(ApiError, match="cannot get traffic"):
        traffic.without(current, {"1": 50, "2": 50}, "1", ["2"])
    assert traffic.without(current, {"2": 100}, "1", ["2"]) == {"2": 100}
    assert traffic.without(current, {"1": 0, "2": 100}, "1", ["2"]) == {"2": 100}
    assert traffic.without({"1": 0, "2": 100}, {}, "1", ["2"]) == {"2": 100}
    assert traffic.without({"1": 100}, {}, "1", []) == {}


def test_traffic_follows_the_percentages() -> None:
    found = Counter(traffic.choose({"1": 75, "2": 25, "3": 0}, "e") for _ in range(4000))
    assert set(found) == {"1", "2"}
    # More than six standard deviations away would be a defect.
    assert abs(found["1"] - 3000) < 170


def test_two_versions_share_the_traffic_of_an_endpoint(client: Any) -> None:
    endpoint, first = client.create(), client.upload("first")
    second = client.upload("second")
    client.done(client.deploy(endpoint, first, id="1"))
    client.done(client.deploy(endpoint, second, {}, id="2"))
    assert client.get(endpoint)["trafficSplit"] == {"1": 100}
    name = endpoint.rpartition("/")[2]
    client.server.call("PATCH", f"endpoints/{name}?updateMask=traffic_split", {"trafficSplit": {"1": 50, "2": 50}})
    answers = {client.predict(endpoint, 1).json()["deployedModelId"] for _ in range(60)}
    assert answers == {"1", "2"}
    refused = client.post(endpoint, "undeployModel", {"deployedModelId": "1"})
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert client.server.call("DELETE", f"endpoints/{name}").json()["error"]["status"] == "FAILED_PRECONDITION"
    client.done(client.post(endpoint, "undeployModel", {"deployedModelId": "1", "trafficSplit": {"2": 100}}))
    assert client.get(endpoint)["trafficSplit"] == {"2": 100}
    assert client.predict(endpoint, 1).json()["deployedModelId"] == "2"


def test_lists_filter_by_name_and_labels(client: Any) -> None:
    mine = client.create(displayName="mine", labels={"managed-by": "tests"})
    client.create(displayName="other")
    for text in ('display_name="mine"', "labels.managed-by=tests", f"endpoint={mine.rpartition('/')[2]}"):
        found = client.server.call("GET", "endpoints", params={"filter": text}).json()["endpoints"]
        assert [each["name"] for each in found] == [mine]
