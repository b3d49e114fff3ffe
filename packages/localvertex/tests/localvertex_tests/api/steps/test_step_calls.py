"""User code that knows nothing of localvertex calls Vertex AI in real steps; nothing but loopback is contacted."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.support import serving

from vertex_testing.runs import STEP, Compile, Execute
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

SETUP = """\
import contextlib, json, os, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
contacted = set()

def watch(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        contacted.add(str(args[0]))
    elif event == "socket.connect" and isinstance(args[1], tuple):
        contacted.add(str(args[1][0]))

sys.addaudithook(watch)

import google.auth
from google.auth.transport.requests import AuthorizedSession

refused = {}

@contextlib.contextmanager
def refusal(name):
    try:
        yield
        refused[name] = "answered"
    except Exception as error:
        refused[name] = f"{type(error).__name__}: {error}"

credentials, project = google.auth.default()
token = json.loads(Path(os.environ["LOCALVERTEX_ENDPOINT"]).read_text())["token"]
(folder / "token").write_text(token)
print("token", token)
"""
"""Watches sockets."""

SERVICES = """\
with refusal("bigquery"):
    from google.cloud import bigquery
    bigquery.Client().query("SELECT 1").result()
with refusal("storage"):
    assert "LOCALVERTEX_GCS_ROOT" not in os.environ, "with buckets, it is emulated"
    from google.cloud import storage
    storage.Client().bucket("bucket").blob("x").upload_from_string("data")
with refusal("cloudresourcemanager"):
    from google.cloud import resourcemanager
    resourcemanager.ProjectsClient().get_project(name="projects/p")
with refusal("pubsub"):
    from google.api_core import grpc_helpers
    channel = grpc_helpers.create_channel("pubsub.googleapis.com:443")
    call = channel.unary_unary("/google.pubsub.v1.Publisher/Publish", bytes, bytes)
    grpc_helpers.wrap_errors(call)(b"", timeout=5)
with refusal("dataflow"):
    AuthorizedSession(credentials).post("https://dataflow.googleapis.com/v1b3/projects/p/jobs", json={})
with refusal("secretmanager"):
    import urllib.request
    urllib.request.urlopen("https://secretmanager.googleapis.com/v1/projects/p/secrets")
with refusal("gemini"):
    from google import genai
    client = genai.Client(vertexai=True, project="p", location="us-central1")
    client.models.generate_content(model="gemini-2.5-flash", contents="hello")
with refusal("asynchronous"):
    import asyncio
    from google.cloud import aiplatform_v1
    async def listed():
        return await aiplatform_v1.ModelServiceAsyncClient().list_models(parent="projects/p/locations/us-central1")
    asyncio.run(listed())
with refusal("datasets"):
    from google.cloud import aiplatform
    aiplatform.init(project="p", location="us-central1")
    aiplatform.TabularDataset.list()
with refusal("custom job"):
    pools = [{"machine_spec": {"machine_type": "n1-standard-4"}, "container_spec": {"image_uri": "i"}}]
    aiplatform.CustomJob("j", worker_pool_specs=pools, staging_bucket="gs://bucket").submit()
"""
"""Calls services that are not emulated; notes what each answered, and the hosts that Python looked up or called."""

VERTEX = """\
from google.cloud import aiplatform, aiplatform_v1
import vertexai

aiplatform.init(project="my-project", location="europe-west4", staging_bucket="gs://bucket", experiment="e")
buckets = os.environ.get("LOCALVERTEX_GCS_ROOT")
weights = folder / "weights"
weights.mkdir(exist_ok=True)
(weights / "model.bin").write_text("weights")
model = aiplatform.Model.upload(
    display_name="pets",
    artifact_uri=str(weights) if buckets else None,
    serving_container_image_uri="serving:1",
    serving_container_command=["python", "-P", sys.argv[2]],
    serving_container_health_route="/health",
    serving_container_predict_route="/predict",
)
endpoint = model.deploy(machine_type="n1-standard-2")
found = {"predicted": len(endpoint.predict(instances=[1, 2]).predictions)}
found["models"] = [each.display_name for each in aiplatform.Model.list()]
found["endpoints"] = len(aiplatform.Endpoint.list())
endpoint.delete(force=True)
name = f"run-{os.getpid()}"
with aiplatform.start_run(name):
    aiplatform.log_params({"rate": 0.1})
    aiplatform.log_metrics({"accuracy": 0.9})
run = aiplatform.ExperimentRun(name, experiment="e")
found["experiment"] = [run.get_params(), run.get_metrics()]
artifact = aiplatform.Artifact.create(schema_title="system.Dataset", display_name="d", uri="gs://bucket/d")
found["artifact"] = aiplatform.Artifact(artifact.name).display_name
client = aiplatform_v1.ModelServiceClient(client_options={"api_endpoint": "europe-west4-aiplatform.googleapis.com"})
listed = client.list_models(parent="projects/my-project/locations/europe-west4")
found["client"] = [each.display_name for each in listed]
rest = aiplatform.gapic.ModelServiceClient(
    transport="rest", client_options={"api_endpoint": "europe-west4-aiplatform.googleapis.com"}
)
found["rest"] = rest.get_model(name=model.resource_name).display_name
# As the clients of google-cloud-aiplatform 1.24, which have no REST.
from google.cloud.aiplatform_v1.services.model_service.transports import ModelServiceGrpcTransport
transport = ModelServiceGrpcTransport(host="europe-west4-aiplatform.googleapis.com", credentials=credentials)
older = aiplatform_v1.ModelServiceClient(transport=transport)
found["grpc"] = [each.display_name for each in older.list_models(parent="projects/my-project/locations/europe-west4")]
with refusal("unknown model"):
    older.get_model(name=f"{model.resource_name}1")
vertexai.init(project="my-project", location="europe-west4")
if buckets:
    from google.cloud import storage
    text = storage.Blob.from_string(f"{model.uri}/model.bin", storage.Client()).download_as_text()
    found["bucket"] = [text, len([*Path(buckets, "bucket").rglob("model.bin")])]
with refusal("pipeline jobs"):
    found["jobs"] = [each.display_name for each in aiplatform.PipelineJob.list()]
found = {
    "vertex": found,
    "refused": refused,
    "contacted": sorted(contacted),
    "project": project,
    "token": credentials.token,
}
(folder / "part").write_text(json.dumps(found))
(folder / "part").rename(folder / "found.json")
"""
"""The SDK as its documentation uses it."""


@dsl.component(**STEP)
def run_program(program: str, words: list) -> None:
    import sys

    sys.argv[1:] = words
    exec(compile(program, "program.py", "exec"), {"__name__": "program"})


@dsl.pipeline(name="calls")
def calls(program: str, words: list) -> None:
    run_program(program=program, words=words)


EXPECTED = {
    "predicted": 2,
    "models": ["pets"],
    "endpoints": 1,
    "experiment": [{"rate": 0.1}, {"accuracy": 0.9}],
    "artifact": "d",
    "client": ["pets"],
    "rest": "pets",
    "grpc": ["pets"],
}


def texts(folder: Path) -> str:
    return "\n".join(each.read_text(errors="replace") for each in folder.rglob("*") if each.is_file())


def test_the_steps_of_a_run_reach_its_endpoint_and_nothing_else(
    execute: Execute, tmp_path: Path, work_dir: Path
) -> None:
    words = [str(tmp_path), serving.__file__]
    record = execute(calls, {"program": SETUP + SERVICES + VERTEX, "words": words})
    assert record["state"] == "SUCCEEDED", texts(work_dir)
    assert "token (secret removed)\n" in texts(work_dir)
    assert (tmp_path / "token").read_text() not in texts(work_dir)
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found["contacted"]) <= {"127.0.0.1", "localhost"}, found["contacted"]
    assert (found["project"], found["token"]) == ("local-project", "localvertex-step")
    assert found["vertex"] == EXPECTED
    refused = found["refused"]
    for name in ("bigquery", "storage", "cloudresourcemanager", "pubsub", "dataflow", "secretmanager"):
        assert f"{name}.googleapis.com" in refused[name], refused[name]
        assert "localvertex.toml" in refused[name], refused[name]
    assert "POST /bigquery/v2/projects/local-project/jobs was not sent" in refused["bigquery"]
    assert "--gcs-root DIR" in refused["storage"]
    assert "google.pubsub.v1.Publisher/Publish was not sent" in refused["pubsub"]
    assert "gemini-2.5-flash:generateContent was not sent" in refused["gemini"]
    assert "ModelService/ListModels was not sent" in refused["asynchronous"]
    assert "(google-cloud-aiplatform 1." in refused["asynchronous"]
    assert refused["unknown model"].startswith("NotFound: 404"), refused["unknown model"]
    assert "DatasetService.ListDatasets is not available to steps" in refused["datasets"]
    assert "JobService.CreateCustomJob is not available to steps" in refused["custom job"]
    assert "localvertex run` does not implement PipelineService.ListPipelineJobs" in refused["pipeline jobs"]


def check_buckets(found: dict[str, Any]) -> None:
    content, num_files = found["bucket"]
    assert content == "weights"
    assert num_files >= 1
    assert {each: found[each] for each in ("predicted", "artifact", "rest")} == {
        "predicted": 2,
        "artifact": "d",
        "rest": "pets",
    }


@pytest.mark.soak
def test_the_steps_of_a_run_reach_its_buckets(execute: Execute, tmp_path: Path, work_dir: Path) -> None:
    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    words = [str(tmp_path), serving.__file__]
    record = execute(calls, {"program": SETUP + VERTEX, "words": words}, gcs_root=tmp_path / "buckets")
    assert record["state"] == "SUCCEEDED", texts(work_dir)
    found = json.loads((tmp_path / "found.json").read_text())
    check_buckets(found["vertex"])
    assert set(found["contacted"]) <= {"127.0.0.1", "localhost"}, found["contacted"]


@pytest.mark.soak
def test_the_steps_and_replicas_of_a_server_s_jobs_reach_it_and_its_buckets(compiled: Compile, tmp_path: Path) -> None:
    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    (tmp_path / "vertex.py").write_text(SETUP + VERTEX)
    words = [str(tmp_path), serving.__file__]
    with Server(tmp_path / "runs", "--gcs-root", str(tmp_path / "buckets"), "--allow-host-commands") as server:
        spec = json.loads(compiled(calls).read_text())
        config = {"parameterValues": {"program": SETUP + VERTEX, "words": words}}
        body = {"displayName": "calls", "pipelineSpec": spec.get("pipelineSpec", spec), "runtimeConfig": config}
        command = ["python3", str(tmp_path / "vertex.py"), *words]
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}
        pool["containerSpec"] = {"imageUri": "python:3.11", "command": command}
        job = {"displayName": "j", "jobSpec": {"workerPoolSpecs": [pool]}}
        for collection, content in (("pipelineJobs", body), ("customJobs", job)):
            created = server.call("POST", collection, content)
            assert created.ok, created.text
            path = f"{collection}/{created.json()['name'].rpartition('/')[2]}"
            wait_until(lambda path=path: server.call("GET", path).json()["state"].endswith(("SUCCEEDED", "FAILED")))
            state = server.call("GET", path).json()["state"]
            assert state.endswith("SUCCEEDED"), texts(tmp_path / "runs") + server.text
            found = json.loads((tmp_path / "found.json").read_text())
            (tmp_path / "found.json").unlink()
            assert set(found["contacted"]) <= {"127.0.0.1", "localhost"}, found["contacted"]
            check_buckets(found["vertex"])
        assert (tmp_path / "token").read_text() not in texts(tmp_path / "runs")
