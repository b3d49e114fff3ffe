"""Real servers in their own processes, with the real SDK as their client."""

import json
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localvertex import client
from vertex_testing.server import Server


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on the test's own work directory."""
    servers: list[Server] = []

    def start(*options: str, **more: Any) -> Server:
        servers.append(Server(tmp_path / "runs", *options, **more))
        return servers[-1]

    yield start
    for each in servers:
        each.end(signal.SIGKILL)


@pytest.fixture(scope="session")
def sdk() -> Iterator[Callable[[Server], Any]]:
    """Point the real google-cloud-aiplatform at a server as docs/serve.md shows."""
    with warnings.catch_warnings():
        # Deprecations in what Google's packages import are not this project's.
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform
        from google.cloud.aiplatform import jobs, pipeline_jobs

    polling = pytest.MonkeyPatch()
    for module in (pipeline_jobs, jobs):
        # The SDK polls every 5 s, which is too slow for a test.
        polling.setattr(module, "_JOB_WAIT_TIME", 0.2)

    def point_at(server: Server) -> Any:
        client.init(server.work_dir)
        return aiplatform

    yield point_at
    polling.undo()


@pytest.fixture(scope="session")
def small_pipeline(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile two steps: one computes, the other waits for the given time and writes a dataset."""
    from kfp import dsl

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def double(n: int) -> int:
        return 2 * n

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def wait(seconds: float, scheduled: str, data: dsl.Output[dsl.Dataset]) -> None:
        import time
        from pathlib import Path

        time.sleep(seconds)
        Path(data.path).write_text("rows")
        data.metadata.update(rows=3, scheduled=scheduled)

    @dsl.pipeline(name="small")
    def small(n: int = 3, seconds: float = 0.0) -> int:
        doubled = double(n=n)
        wait(seconds=seconds, scheduled=dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER).set_caching_options(False)
        return doubled.output

    return compile_pipeline(small, tmp_path_factory.mktemp("compiled") / "small.json")


@pytest.fixture(scope="session")
def light_pipeline(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compile a pipeline that starts no process, so that its runs end at once."""
    from kfp import dsl

    @dsl.pipeline(name="light")
    def light(x: str = "y") -> None:
        dsl.importer(artifact_uri="/tmp", artifact_class=dsl.Dataset, metadata={"x": x})

    content: dict[str, Any] = json.loads(
        compile_pipeline(light, tmp_path_factory.mktemp("compiled") / "light.json").read_text()
    )
    return content


@pytest.fixture
def new_job(small_pipeline: Path, tmp_path: Path, sdk: Any) -> Callable[..., Any]:
    """Build a PipelineJob of the SDK without submitting it."""

    def new(server: Server, **options: Any) -> Any:
        defaults = {"display_name": "small run", "template_path": str(small_pipeline), "pipeline_root": str(tmp_path)}
        return sdk(server).PipelineJob(**(defaults | options))

    return new
