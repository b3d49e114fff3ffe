"""PipelineJob files: a pipeline with settings of its run, as the service returns it."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def fail() -> None:
    raise ValueError("on purpose")


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return open(data.path).read()


def _job(runtime: dict[str, Any] | None = None, **fields: Any) -> Any:
    """Return an edit that wraps the pipeline into a job."""

    def change(document: dict[str, Any]) -> None:
        spec = dict(document)
        document.clear()
        document |= {**fields, "pipelineSpec": spec, "runtimeConfig": runtime or {}}

    return change


_AS_SERVICE = {
    "name": "projects/1/locations/us-central1/pipelineJobs/job-1",
    "displayName": "A job",
    "createTime": "2026-01-01T00:00:00Z",
    "startTime": "2026-01-01T00:00:00Z",
    "endTime": "2026-01-01T00:01:00Z",
    "updateTime": "2026-01-01T00:01:00Z",
    "state": "PIPELINE_STATE_SUCCEEDED",
    "jobDetail": {"taskDetails": []},
    "error": {"code": 9, "message": "text"},
    "labels": {"team": "vision"},
    "templateUri": "https://us-kfp.pkg.dev/project/pipelines/echo/v1",
    "templateMetadata": {"version": "v1"},
    "scheduleName": "projects/1/locations/us-central1/schedules/1",
    "preflightValidations": True,
    "satisfiesPzs": True,
    "satisfiesPzi": True,
}


@construct(outputs={"Output": "default"}, edit=_job(**_AS_SERVICE), is_vertex_only=True)
@dsl.pipeline(name="job-of-the-service")
def job_of_the_service(text: str = "default") -> str:
    return echo(text=text).output


@construct(
    outputs={"Output": "from the job"},
    edit=_job({"parameterValues": {"text": "from the job"}}),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-with-parameters")
def job_with_parameters(text: str = "default") -> str:
    return echo(text=text).output


@construct(
    outputs={"Output": "a"},
    edit=_job({"gcsOutputDirectory": "gs://bucket/root"}),
    warnings=("runtimeConfig.gcsOutputDirectory gs://bucket/root: outputs go to the work folder",),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-with-an-output-directory")
def job_with_an_output_directory() -> str:
    return echo(text="a").output


_OLDER = {"text": {"stringValue": "a"}, "n": {"intValue": "3"}, "x": {"doubleValue": 0.5}}


@construct(outputs={"Output": "a 3 0.5"}, edit=_job({"parameters": _OLDER}, displayName="older"), is_vertex_only=True)
@dsl.pipeline(name="job-with-older-parameters")
def job_with_older_parameters(text: str, n: int, x: float) -> str:
    return echo(text=f"{text} {n} {x}").output


@construct(
    state="FAILED",
    error="on purpose",
    states={"fail": "FAILED", "echo": "NOT_TRIGGERED"},
    edit=_job({"failurePolicy": "PIPELINE_FAILURE_POLICY_FAIL_FAST"}),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-that-fails-fast")
def job_that_fails_fast() -> None:
    echo(text="a").after(fail())


_KEY = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"


@construct(
    outputs={"Output": f"me@project.iam|projects/1/global/networks/n|{_KEY}|pool"},
    edit=_job(
        {
            "defaultRuntime": {
                "persistentResourceRuntimeDetail": {
                    "persistentResourceName": "projects/1/locations/us-central1/persistentResources/pool",
                    "taskResourceUnavailableWaitTimeMs": "1000",
                    "taskResourceUnavailableTimeoutBehavior": "FAIL",
                }
            }
        },
        serviceAccount="me@project.iam",
        network="projects/1/global/networks/n",
        encryptionSpec={"kmsKeyName": _KEY},
        reservedIpRanges=["range"],
        pscInterfaceConfig={"networkAttachment": "attachment"},
    ),
    warnings=("reservedIpRanges has no effect", "pscInterfaceConfig has no effect", "runtimeConfig.defaultRuntime"),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-with-google-settings")
def job_with_google_settings() -> str:
    names = ("service_account", "network", "encryption_key_name", "persistent_resource_id")
    return echo(text="|".join(f"{{{{$.pipeline_{name}}}}}" for name in names)).output


@construct(
    artifacts={"data": "given.txt"},
    outputs={"Output": "given"},
    edit=_job({"inputArtifacts": {"data": {"artifactId": "1"}}}),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-with-an-input-artifact")
def job_with_an_input_artifact(data: dsl.Input[dsl.Dataset]) -> str:
    return read(data=data).output


@construct(
    refused="runtimeConfig.inputArtifacts.data is an artifact of Vertex ML Metadata",
    edit=_job({"inputArtifacts": {"data": {"artifactId": "1"}}}),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-without-its-input-artifact")
def job_without_its_input_artifact(data: dsl.Input[dsl.Dataset]) -> str:
    return read(data=data).output


@construct(
    refused="originalPipelineJobId: a rerun cannot run locally",
    edit=_job(originalPipelineJobId="1"),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-that-is-a-rerun")
def job_that_is_a_rerun() -> str:
    return echo(text="a").output


@construct(
    refused="pipelineTaskRerunConfigs: a rerun cannot run locally",
    edit=_job(pipelineTaskRerunConfigs=[{"taskId": "1"}]),
    is_vertex_only=True,
)
@dsl.pipeline(name="job-that-reruns-tasks")
def job_that_reruns_tasks() -> str:
    return echo(text="a").output
