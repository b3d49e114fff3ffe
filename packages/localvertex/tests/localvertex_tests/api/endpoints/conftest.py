"""Models whose container is tests/support/serving.py, and endpoints that are deleted after each test."""

from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from localvertex_tests.support import serving

from vertex_testing.processes import with_own_id
from vertex_testing.server import PARENT, Server

MACHINE = {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1}

CONTAINER = {
    "imageUri": "serving:1",
    "command": ["python", "-P", serving.__file__],
    "healthRoute": "/health",
    "predictRoute": "/predict",
}


class Client:
    """Plain requests to a server about models and endpoints."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def upload(self, *words: str, artifact: str = "", **container: Any) -> str:
        """Upload a model, and return its name."""
        spec = CONTAINER | {"args": [*words]} | container
        model = {"displayName": "served", "containerSpec": spec} | ({"artifactUri": artifact} if artifact else {})
        return str(self.done(self.server.call("POST", "models:upload", {"model": model}))["model"])

    def create(self, **fields: Any) -> str:
        """Create an endpoint, and return its name."""
        return str(self.done(self.server.call("POST", "endpoints", {"displayName": "live"} | fields))["name"])

    def deploy(self, endpoint: str, model: str, /, split: dict[str, int] | None = None, **fields: Any) -> Any:
        """Deploy a model, and return the response."""
        deployed = {"model": model, "dedicatedResources": MACHINE} | fields
        body = {"deployedModel": deployed, "trafficSplit": {"0": 100} if split is None else split}
        return self.post(endpoint, "deployModel", body)

    def deployed(self, *words: str, **container: Any) -> str:
        """Create an endpoint with a model that has all traffic, and return its name."""
        endpoint = self.create()
        self.done(self.deploy(endpoint, self.upload(*words, **container), id="1"))
        return endpoint

    def post(self, endpoint: str, method: str, body: Any) -> Any:
        """Call a method of an endpoint."""
        return self.server.call("POST", f"{endpoint.removeprefix(f'{PARENT}/')}:{method}", body)

    def predict(self, endpoint: str, *instances: Any) -> Any:
        """Request predictions, and return the response."""
        return self.post(endpoint, "predict", {"instances": [*instances]})

    def process_id(self, endpoint: str) -> int:
        """Return the id of the process that answers."""
        answer = self.predict(endpoint, 1).json()
        assert "predictions" in answer, answer
        number = int(answer["predictions"][0]["by"]["pid"])
        return with_own_id(number, psutil.Process(self.server.process.pid).children(recursive=True)).pid

    def get(self, name: str) -> Any:
        """Return a resource."""
        return self.server.call("GET", name.removeprefix(f"{PARENT}/")).json()

    def done(self, response: Any) -> Any:
        """Return the result of a finished operation."""
        content = response.json()
        assert content.get("done"), content
        return content["response"]


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """The server that all tests share; nothing is deployed afterwards."""
    client = Client(server)
    yield client
    for endpoint in server.call("GET", "endpoints").json()["endpoints"]:
        for each in endpoint.get("deployedModels", []):
            rest = {"trafficSplit": {}}
            server.call("PATCH", f"endpoints/{endpoint['name'].rpartition('/')[2]}?updateMask=trafficSplit", rest)
            client.post(endpoint["name"], "undeployModel", {"deployedModelId": each["id"]})
        server.call("DELETE", f"endpoints/{endpoint['name'].rpartition('/')[2]}")


@pytest.fixture
def client_of() -> Callable[[Server], Client]:
    """Build the client of another server."""
    return Client
