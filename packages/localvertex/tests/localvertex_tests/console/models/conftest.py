"""The console's models over a work folder in this process, with real serving containers where a test starts one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import serving

from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.predictions import Predictions
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall
from localvertex.console.models.models import ModelCatalogue
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import NoCredentials
from localvertex.processes.processes import Processes
from localvertex.runner.engine import Options
from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.server import PARENT

MACHINE = {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1}


class Room:
    """The models of a work folder, and requests to them."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir, self.log = work_dir, list[str]()
        self.processes, credentials = Processes(grace_seconds=5.0), NoCredentials()
        machine = Machine(
            work_dir=work_dir, processes=self.processes, credentials=credentials, choice=Options().container_choice
        )
        self.deployments = Deployments(machine, self.log.append)
        self.store = Store(work_dir, self.log.append)
        self.models = ModelCatalogue(self.store, Predictions(EndpointRecords(work_dir), self.deployments))
        self._credentials = credentials

    def add(self, *words: str, name: str = "m", aliases: tuple[str, ...] = (), **fields: Any) -> ModelVersions:
        """Add a version whose container is tests/support/serving.py."""
        container = {
            "image_uri": "serving:1",
            "command": ["python", "-P", serving.__file__],
            "args": [*words],
            "health_route": "/health",
            "predict_route": "/predict",
        }
        registry.add(self.work_dir, {"display_name": name, "container_spec": container, **fields}, aliases=aliases)
        return ModelVersions.of(self.work_dir, name)

    def get(self, version: str = "1", model: str = "m") -> dict[str, Any]:
        """Return a version."""
        return self.models.get(LocalCall(path={"id": model, "version": version}))

    def deploy(self, endpoint: str, number: str, *, traffic: int = 100, deployed: str = "7", model: str = "m") -> None:
        """Write the record of an endpoint with a version that is deployed to it."""
        content = {
            "name": f"{PARENT}/endpoints/{endpoint}",
            "displayName": f"endpoint {endpoint}",
            "createTime": "2026-01-01T00:00:00Z",
            "updateTime": "2026-01-01T00:00:00Z",
            "trafficSplit": {deployed: traffic} if traffic else {},
            "deployedModels": [
                {
                    "id": deployed,
                    "model": f"{PARENT}/models/{model}",
                    "modelVersionId": number,
                    "createTime": "2026-01-01T00:00:00Z",
                    "dedicatedResources": MACHINE,
                }
            ],
        }
        EndpointRecords(self.work_dir).write(endpoint, content)

    def close(self) -> None:
        """End what runs."""
        self.processes.stop()
        self.deployments.close()
        self._credentials.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """The models of an empty work folder."""
    room = Room(tmp_path / "runs")
    yield room
    room.close()
