"""The Model Registry of `localvertex serve`, reached as steps reach it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.registry.registry import Registry
from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import StepEndpoint
from tests.support.finished import note_evaluation, write_finished_run
from vertex_testing.server import Server

REGION = "us-central1"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a work folder of its own."""
    with Server(tmp_path_factory.mktemp("registry") / "runs") as server:
        yield server


@pytest.fixture
def reachable(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the steps of this process reach the server, as localvertex does for the steps of a run."""
    token = server.headers["Authorization"].removeprefix("Bearer ")
    step_endpoint.write(tmp_path / "endpoint.json", StepEndpoint(address=server.url, token=token))
    monkeypatch.setenv(step_endpoint.VARIABLE, str(tmp_path / "endpoint.json"))


@pytest.fixture
def registry(server: Server, reachable: None) -> Iterator[Registry]:
    """The registry, without models before and after a test."""
    yield Registry(region=REGION, pipeline_root=str(server.work_dir))
    for model in server.call("GET", "models").json().get("models", []):
        server.call("DELETE", f"models/{model['name'].rpartition('/')[2]}").raise_for_status()


@pytest.fixture
def run(tmp_path: Path) -> str:
    """The checkpoint folder of a finished run with a test accuracy of 0.9."""
    directory = str(tmp_path / "checkpoints")
    identity = {"global_batch_size": 8, "dataset_fingerprint": "d" * 64}
    write_finished_run(directory, run_id="0123456789abcdef", identity=identity, accuracy=0.9)
    note_evaluation(directory, 0.9)
    return directory
