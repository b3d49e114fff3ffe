"""The pipelines of the run page, started on real servers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.watch import pipelines

from vertex_testing.browser import browser  # noqa: F401 - a fixture
from vertex_testing.server import Server

Start = Callable[..., None]


@pytest.fixture(scope="session")
def compiled(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compile the pipelines, by their names."""
    folder = tmp_path_factory.mktemp("compiled")
    every = (pipelines.watched, pipelines.failing)
    return {each.name: json.loads(compile_pipeline(each, folder / f"{each.name}.json").read_text()) for each in every}


@pytest.fixture
def start_run(compiled: dict[str, Any]) -> Start:
    """Start a run of a pipeline; its id is the pipeline's name."""

    def start(server: Server, name: str, **parameters: Any) -> None:
        values = {key: str(value) if isinstance(value, Path) else value for key, value in parameters.items()}
        body = {"displayName": f"{name} run", "pipelineSpec": compiled[name]}
        body["runtimeConfig"] = {"parameterValues": values}
        server.call("POST", f"pipelineJobs?pipelineJobId={name}", body).raise_for_status()

    return start
