"""`PipelineJob(input_artifacts=...)`: artifacts of the metadata store are inputs of a run."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.api_core import exceptions
from kfp import dsl

from vertex_testing.runs import STEP
from vertex_testing.server import PARENT, Server

pytestmark = pytest.mark.slow

STORE = f"{PARENT}/metadataStores/default"


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return f"{open(data.path).read()} {data.metadata['rows']:g} {data.name}"


@dsl.pipeline(name="reads")
def reads(data: dsl.Input[dsl.Dataset]) -> str:
    return read(data=data).output


@pytest.fixture(scope="module")
def template(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_pipeline(reads, tmp_path_factory.mktemp("compiled") / "reads.json"))


@pytest.fixture
def job(cloud: Any, template: str, tmp_path: Path) -> Any:
    """Build a job with these input artifacts."""

    def new(**artifacts: str) -> Any:
        return cloud.PipelineJob(
            display_name="reads",
            template_path=template,
            # The SDK's own ids are the same within a second.
            job_id=f"reads-{uuid4().hex}",
            pipeline_root=str(tmp_path),
            input_artifacts=artifacts,
        )

    return new


def test_an_artifact_by_its_id(cloud: Any, job: Any, endpoint: Server, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b")
    artifact = cloud.Artifact.create(
        schema_title="system.Dataset", uri=str(tmp_path / "rows.csv"), metadata={"rows": 3}, resource_id="my-rows"
    )
    for _ in range(2):
        run = job(data="my-rows")
        run.submit()
        run.wait()
        assert run.runtime_config.input_artifacts["data"].artifact_id == "my-rows"
        (task,) = [each for each in run.task_details if each.task_name == "read"]
        assert task.execution.metadata["output:Output"] == f"a,b 3 {artifact.resource_name}"
        assert task.inputs["data"].artifacts[0].name == artifact.resource_name
    # The same artifact: the second run takes the step from the cache.
    assert run.task_details[-1].state.name == "SKIPPED"


def test_a_schedule_with_an_artifact_is_checked(cloud: Any, job: Any, tmp_path: Path) -> None:
    with pytest.raises(exceptions.BadRequest, match="there is no artifact"):
        job(data="no-such").create_schedule(cron="0 3 * * *", display_name="nightly")


@pytest.mark.parametrize(
    ("artifacts", "text"),
    [
        ({"data": "no-such"}, f"runtimeConfig.inputArtifacts.data: there is no artifact {STORE}/artifacts/no-such"),
        ({"other": "rows"}, "the pipeline has no input artifact 'other'; it has data"),
        ({"data": f"{STORE}/artifacts/rows"}, "expected only the last part of the resource name"),
        ({"data": "gone"}, "its files are not on this machine: there is no file or folder '/no/such/file'"),
        ({"data": "far"}, "gs://bucket/rows.csv is in Cloud Storage; start the server with --gcs-root DIR"),
        ({}, r"no input artifact for data \(system.Dataset\)"),
    ],
)
def test_an_artifact_that_cannot_be_read_is_refused(
    cloud: Any, job: Any, endpoint: Server, artifacts: dict[str, str], text: str
) -> None:
    for name, uri in (("rows", "/dev/null"), ("gone", "/no/such/file"), ("far", "gs://bucket/rows.csv")):
        endpoint.call("POST", f"metadataStores/default/artifacts?artifactId={name}", {"uri": uri})
    jobs = endpoint.call("GET", "pipelineJobs").json()
    with pytest.raises(exceptions.BadRequest, match=text):
        job(**artifacts).submit()
    assert endpoint.call("GET", "pipelineJobs").json() == jobs
