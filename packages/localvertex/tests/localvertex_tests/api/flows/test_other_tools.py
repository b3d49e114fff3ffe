"""docs/other-tools.md: the calls of vertex-pipelines-deployer and kedro-vertexai, after the page's first lines.

The calls are those of vertex-pipelines-deployer 5b61980 (deployer/pipeline_deployer.py) and of kedro-vertexai 1e462cc
(kedro_vertexai/client.py), with their arguments. Both pass an experiment to every run.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kfp import dsl

from vertex_testing.runs import STEP
from vertex_testing.server import Server

pytestmark = pytest.mark.slow


@dsl.component(**STEP)
def train(rate: float, metrics: dsl.Output[dsl.Metrics]) -> None:
    metrics.log_metric("accuracy", 1 - rate)


@dsl.pipeline(name="training")
def training(rate: float = 0.25) -> None:
    train(rate=rate)


@pytest.fixture(scope="module")
def template(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_pipeline(training, tmp_path_factory.mktemp("compiled") / "training.yaml"))


@pytest.fixture
def program(endpoint: Server, package: Path) -> str:
    """The page's program in the folder of the server's work folder."""
    page = (package / "docs" / "other-tools.md").read_text()
    (found,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found.count("http://127.0.0.1:8700") == 1
    return str(found.replace("http://127.0.0.1:8700", endpoint.url))


@pytest.fixture
def aiplatform(sdk: Callable[[Server], Any], endpoint: Server, program: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The SDK after the lines of the page that come before each tool."""
    found = sdk(endpoint)
    monkeypatch.chdir(endpoint.work_dir.parent)
    # gRPC trusts one server in a process, and other tests have others.
    lines = program.partition("\nsys.argv")[0]
    exec(lines.replace('client.init("runs")', 'client.init("runs", api_transport="rest")'), {})
    return found


def test_the_program_of_the_page_starts_a_tool(endpoint: Server, program: str) -> None:
    (endpoint.work_dir.parent / "local.py").write_text(program)
    words = [sys.executable, "local.py", "kfp", "--version"]
    done = subprocess.run(words, cwd=endpoint.work_dir.parent, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["kfp"]), done.stderr


def rows_of(aiplatform: Any, experiment: str, job: Any) -> list[dict[str, Any]]:
    """Return what the experiment has of a run."""
    return [
        each for each in aiplatform.get_experiment_df(experiment).to_dict("records") if each["run_name"] == job.job_id
    ]


def test_vertex_pipelines_deployer(aiplatform: Any, template: str) -> None:
    # VertexPipelineDeployer.__init__, run, schedule
    aiplatform.init(project="local-project", staging_bucket="gs://staging")
    job = aiplatform.PipelineJob(
        display_name="training",
        job_id=f"training-{uuid4().hex}",
        template_path=template,
        pipeline_root="gs://staging/root",
        location="us-central1",
        enable_caching=None,
        parameter_values={"rate": 0.5},
        input_artifacts=None,
    )
    job.submit(experiment="training-experiment", service_account="trainer@local-project.iam.gserviceaccount.com")
    job.wait()
    (row,) = rows_of(aiplatform, "training-experiment", job)
    assert (row["param.rate"], row["metric.accuracy"], row["state"]) == (0.5, 0.5, "COMPLETE")
    for _ in range(2):
        found = aiplatform.PipelineJobSchedule.list(
            filter='display_name="schedule-training"', order_by="create_time desc", location="us-central1"
        )
        for each in found:
            each.delete()
        schedule = aiplatform.PipelineJobSchedule(
            pipeline_job=job, display_name="schedule-training", location="us-central1"
        )
        schedule.create(cron="TZ=Europe/Paris 0 3 * * *", service_account=None)
    assert len(found) == 1
    schedule.delete()


def test_kedro_vertexai(aiplatform: Any, template: str) -> None:
    # VertexAIPipelinesClient.__init__, run_once, list_pipelines, schedule
    aiplatform.init(
        project="local-project", location="us-central1", experiment="kedro", experiment_description="a description"
    )
    name = f"kedro-{uuid4().hex}"
    job = aiplatform.PipelineJob(
        display_name=name,
        template_path=template,
        job_id=name,
        pipeline_root="gs://staging/kedro",
        parameter_values={"rate": 0.125},
        enable_caching=False,
    )
    job.submit(service_account=None, network=None, experiment="kedro")
    job.wait()
    assert name in [each.name for each in aiplatform.PipelineJob.list()]
    (row,) = rows_of(aiplatform, "kedro", job)
    assert (row["param.rate"], row["metric.accuracy"], row["run_type"]) == (0.125, 0.875, "system.PipelineRun")
    job.create_schedule(
        cron="TZ=Etc/UTC 0 12 * * *",
        display_name="kedro nightly",
        start_time=None,
        end_time=None,
        allow_queueing=False,
        max_run_count=None,
        max_concurrent_run_count=1,
        service_account=None,
        network=None,
    )
    (schedule,) = aiplatform.PipelineJobSchedule.list(filter='display_name="kedro nightly"')
    schedule.delete()
