"""Training pipelines, tuning jobs and batch predictions: what must never happen to them, and what they refuse."""

import io
import json
import signal
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.api.test_stays_up import UNTIL, create, processes, state
from localvertex_tests.support import serving

from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.jobs.training_pipelines import TrainingPipelines
from localvertex.api.models.models import Models
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.store import Store
from localvertex.runner.engine import Options
from localvertex.store import registry
from localvertex.store.models.reading import UPLOADED_BY
from localvertex.values.buckets import Buckets
from vertex_testing.processes import command_line, has_ended
from vertex_testing.server import PARENT, Server, wait_until

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"

SAVES = """
import os, pathlib
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"])
folder.mkdir(parents=True, exist_ok=True)
(folder / "weights").write_text("w")
"""

CONTAINER = {"imageUri": "serving:1", "command": ["python", "-P", serving.__file__]}
CONTAINER |= {"healthRoute": "/health", "predictRoute": "/predict"}

JOBS = ("trainingPipelines", "hyperparameterTuningJobs", "batchPredictionJobs")

MACHINE = {"machineType": "n1-standard-4"}

NO_SUCH_MACHINE = {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}


def spec(code: str, *arguments: str, machine: dict[str, Any] = MACHINE, **more: Any) -> dict[str, Any]:
    container = {"imageUri": "python:3.11", "command": ["python", "-c", code, *arguments]}
    pool = {"machineSpec": machine, "replicaCount": 1, "containerSpec": container}
    return {"workerPoolSpecs": [pool], "scheduling": {"disableRetries": True}, **more}


def training(name: str, code: str, *arguments: str, **model: Any) -> dict[str, Any]:
    inputs = spec(code, *arguments, baseOutputDirectory={"outputUriPrefix": f"gs://trained/{name}"})
    body: dict[str, Any] = {"displayName": name, "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    return body | {"modelToUpload": {"displayName": name, "containerSpec": CONTAINER, **model}}


def tuning(code: str, *arguments: str, **fields: Any) -> dict[str, Any]:
    units = {"parameterId": "units", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": [units]}
    body = {"displayName": "tuned", "studySpec": study, "trialJobSpec": spec(code, *arguments)}
    return body | {"maxTrialCount": 2, "parallelTrialCount": 2} | fields


def prediction(model: str, **fields: Any) -> dict[str, Any]:
    source = {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://data/lines.jsonl"]}}
    target = {"predictionsFormat": "jsonl", "gcsDestination": {"outputUriPrefix": "gs://data/out"}}
    machines = {"machineSpec": MACHINE, "startingReplicaCount": 1}
    body = {"displayName": "predicted", "model": model, "inputConfig": source, "outputConfig": target}
    return body | {"dedicatedResources": machines} | fields


def upload(server: Server, *instances: Any) -> str:
    """Upload a model, write its instances, and return its name."""
    lines = server.work_dir / "buckets" / "data" / "lines.jsonl"
    lines.parent.mkdir(parents=True, exist_ok=True)
    lines.write_text("".join(f"{json.dumps(each)}\n" for each in instances))
    model = {"displayName": "served", "containerSpec": CONTAINER}
    return str(server.call("POST", "models:upload", {"model": model}).json()["response"]["model"])


def ended(server: Server, path: str) -> dict[str, Any]:
    """Wait for the end of a job."""
    found: dict[str, Any] = wait_until(lambda: (job := server.call("GET", path).json()).get("endTime") and job)
    return found


def custom_job_of(server: Server, pipeline: dict[str, Any]) -> dict[str, Any]:
    name = pipeline["trainingTaskMetadata"]["backingCustomJob"]
    found: dict[str, Any] = server.call("GET", f"customJobs/{name.rpartition('/')[2]}").json()
    return found


def models(server: Server) -> list[str]:
    return [each["displayName"] for each in server.call("GET", "models").json()["models"]]


def test_a_failed_replica_fails_the_pipeline_and_registers_no_model(server: Server) -> None:
    number = create(server, "trainingPipelines", training("failing", f"{SAVES}\nraise SystemExit('no data')"))
    pipeline = ended(server, f"trainingPipelines/{number}")
    assert (pipeline["state"], pipeline["error"]["code"]) == ("PIPELINE_STATE_FAILED", 3)
    assert "workerpool0-0" in pipeline["error"]["message"]
    assert "no data" in pipeline["error"]["message"]
    assert "name" not in pipeline["modelToUpload"]
    custom_job = custom_job_of(server, pipeline)
    assert (custom_job["state"], custom_job["error"]) == ("JOB_STATE_FAILED", pipeline["error"])
    assert custom_job["displayName"] == "failing-custom-job"
    assert "failing" not in models(server)


def test_a_cancelled_pipeline_leaves_no_process_and_no_model(server: Server, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    number = create(server, "trainingPipelines", training("stopped", SAVES + UNTIL, go))
    wait_until(lambda: processes(go))
    assert server.call("DELETE", f"trainingPipelines/{number}").status_code == 400
    assert server.call("POST", f"trainingPipelines/{number}:cancel", {}).status_code == 200
    pipeline = ended(server, f"trainingPipelines/{number}")
    assert (pipeline["state"], pipeline["error"]["code"]) == ("PIPELINE_STATE_CANCELLED", 1)
    assert custom_job_of(server, pipeline)["state"] == "JOB_STATE_CANCELLED"
    assert not processes(go)
    assert "stopped" not in models(server)
    assert server.call("DELETE", f"trainingPipelines/{number}").status_code == 200
    assert server.call("GET", f"trainingPipelines/{number}").status_code == 404


def test_a_pipeline_whose_custom_job_was_cancelled_is_failed(server: Server, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    number = create(server, "trainingPipelines", training("robbed", SAVES + UNTIL, go))
    wait_until(lambda: processes(go))
    name = custom_job_of(server, server.call("GET", f"trainingPipelines/{number}").json())["name"]
    server.call("POST", f"customJobs/{name.rpartition('/')[2]}:cancel", {}).raise_for_status()
    pipeline = ended(server, f"trainingPipelines/{number}")
    assert (pipeline["state"], pipeline["error"]["message"]) == ("PIPELINE_STATE_FAILED", f"{name} was cancelled")
    assert "robbed" not in models(server)


def test_a_training_without_a_file_of_the_model_is_failed(server: Server) -> None:
    number = create(server, "trainingPipelines", training("empty", "pass"))
    pipeline = ended(server, f"trainingPipelines/{number}")
    assert pipeline["state"] == "PIPELINE_STATE_FAILED"
    text = 'There are no files under "gs://trained/empty/model" to copy: the program has to write its model'
    assert pipeline["error"]["message"].startswith(text)
    assert "empty" not in models(server)


def test_trials_are_shown_while_they_run_and_end_with_the_job(server: Server, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    number = create(server, "hyperparameterTuningJobs", tuning(UNTIL, go))
    path = f"hyperparameterTuningJobs/{number}"
    wait_until(lambda: len(processes(go)) == 2)
    found = server.call("GET", path).json()
    assert found["state"] == "JOB_STATE_RUNNING"
    assert [each["state"] for each in found["trials"]] == ["ACTIVE", "ACTIVE"]
    assert server.call("POST", f"{path}:cancel", {}).status_code == 200
    found = ended(server, path)
    assert found["state"] == "JOB_STATE_CANCELLED"
    assert [each["state"] for each in found["trials"]] == ["STOPPING", "STOPPING"]
    assert not processes(go)


def test_a_tuning_job_whose_replicas_fail_is_failed(server: Server) -> None:
    number = create(server, "hyperparameterTuningJobs", tuning("raise SystemExit('no data')", parallelTrialCount=1))
    found = ended(server, f"hyperparameterTuningJobs/{number}")
    assert found["state"] == "JOB_STATE_FAILED"
    assert "trial 1: workerpool0-0" in found["error"]["message"]
    assert "no data" in found["trials"][0]["infeasibleReason"]


def test_lines_without_a_prediction_are_counted_and_none_is_a_failure(server: Server) -> None:
    name = upload(server, {"x": 1}, "bad", {"x": 2})
    number = create(server, "batchPredictionJobs", prediction(name))
    found = ended(server, f"batchPredictionJobs/{number}")
    assert (found["state"], found["modelVersionId"]) == ("JOB_STATE_SUCCEEDED", "1")
    assert found["completionStats"] == {"successfulCount": "2", "failedCount": "1"}
    assert "1 of 3 lines have no prediction" in found["partialFailures"][0]["message"]
    assert found["outputInfo"]["gcsOutputDirectory"].startswith("gs://data/out/prediction-served-")
    upload(server, "bad")
    unmanaged = prediction("", unmanagedContainerModel={"containerSpec": CONTAINER})
    found = ended(server, f"batchPredictionJobs/{create(server, 'batchPredictionJobs', unmanaged)}")
    assert (found["state"], "outputInfo" in found) == ("JOB_STATE_FAILED", False)
    assert "none of 1 lines has a prediction" in found["error"]["message"]


def test_a_cancelled_prediction_ends_its_container(server: Server) -> None:
    target = {"predictionsFormat": "jsonl", "gcsDestination": {"outputUriPrefix": "gs://cancelled"}}
    body = prediction(upload(server, "wait")) | {"outputConfig": target}
    number = create(server, "batchPredictionJobs", body)
    path = f"batchPredictionJobs/{number}"
    log = server.work_dir / "api" / path / "container.log"
    wait_until(lambda: (log.exists() and "POST" in log.read_text()) or state(server, path) == "RUNNING")
    server.call("POST", f"{path}:cancel", {}).raise_for_status()
    assert ended(server, path)["state"] == "JOB_STATE_CANCELLED"
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert not [each for each in children if serving.__file__ in " ".join(command_line(each))]
    assert not [*(server.work_dir / "buckets" / "cancelled").glob("*/prediction.results*")]


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


TRAINING, AUTOML = training("refused", "pass"), CUSTOM_TASK.replace("custom_task", "automl_tabular")
TUNING, ONE = tuning("pass"), f"{PARENT}/models/absent"
CSV = {"instancesFormat": "csv", "gcsSource": {"uris": ["gs://data/lines.csv"]}}
BIGQUERY = {"instancesFormat": "bigquery", "bigquerySource": {"inputUri": "bq://a.b.c"}}
UNMANAGED = prediction("", unmanagedContainerModel={"containerSpec": CONTAINER})


@pytest.mark.parametrize(
    ("collection", "body", "text"),
    [
        (0, TRAINING | {"inputDataConfig": {"datasetId": "7"}}, "datasetId '7': managed datasets do not exist here"),
        (0, TRAINING | {"trainingTaskDefinition": AUTOML}, "automl_tabular_1.0.0.yaml' does not run locally"),
        (0, TRAINING | {"trainingTaskInputs": [1]}, "trainingTaskInputs: expected an object"),
        (0, TRAINING | {"trainingTaskInputs": {"workers": 1}}, 'no field named "workers"'),
        (0, TRAINING | {"trainingTaskInputs": spec("pass")}, "outputUriPrefix is missing; modelToUpload needs it"),
        (0, TRAINING | {"trainingTaskInputs": spec("pass", machine=NO_SUCH_MACHINE)}, "a2-highgpu-1g"),
        (0, TRAINING | {"parentModel": ONE}, "models/absent is not found"),
        (0, TRAINING | {"modelId": "../x"}, "modelId '../x': expected letters"),
        (0, training("refused", "pass", versionAliases=["3"]), "'3'"),
        (0, training("refused", "pass", displayName=""), "model.displayName is missing"),
        (0, without(TRAINING, "displayName"), "displayName is missing"),
        (1, tuning("pass") | {"trialJobSpec": spec("pass", machine=NO_SUCH_MACHINE)}, "a2-highgpu-1g"),
        (1, TUNING | {"maxTrialCount": 0}, "max_trial_count: expected an integer of at least 1"),
        (1, TUNING | {"parallelTrialCount": 2**31 - 1}, "parallelTrialCount: expected up to 100"),
        (1, without(TUNING, "studySpec"), "study_spec.metrics: expected at least one metric_id with its goal"),
        (2, prediction(ONE), "models/absent is not found"),
        (2, prediction("projects/x/locations/y/models/1"), "projects/x/locations/y/models/1': expected projects/"),
        (2, UNMANAGED | {"inputConfig": CSV}, "instances_format 'csv'"),
        (2, UNMANAGED | {"inputConfig": BIGQUERY}, "instances_format 'bigquery'"),
        (2, UNMANAGED | {"inputConfig": CSV | {"gcsSource": {"uris": ["/etc/passwd"]}}}, "'/etc/passwd': expected an"),
        (2, UNMANAGED | {"outputConfig": {"gcsDestination": {"outputUriPrefix": "/tmp"}}}, "'/tmp': expected an"),
        (2, UNMANAGED | {"inputConfig": {"gcsSource": {"uris": ["gs://a/../../b"]}}}, "points outside its bucket"),
        (2, UNMANAGED | {"generateExplanation": True}, "generate_explanation: explanations do not run locally"),
        (2, UNMANAGED | {"dedicatedResources": {"machineSpec": NO_SUCH_MACHINE}}, "a2-highgpu-1g"),
        (2, without(UNMANAGED, "dedicatedResources"), "machine_type is missing"),
        (2, without(UNMANAGED, "inputConfig"), "gcs_source_uris is empty"),
    ],
)
def test_what_cannot_run_is_refused_by_name(server: Server, collection: int, body: dict[str, Any], text: str) -> None:
    answer = server.call("POST", JOBS[collection], body)
    assert answer.status_code in (400, 404), answer.text
    assert text in answer.json()["error"]["message"]
    listed = server.call("GET", JOBS[collection]).json()[JOBS[collection]]
    assert "refused" not in [each["displayName"] for each in listed]


def test_a_pipeline_whose_model_is_registered_has_succeeded_although_its_server_was_killed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    pipelines = TrainingPipelines(
        store, print, CustomJobs(store, print, Options(work_dir=tmp_path)), Models(store, Buckets())
    )
    name = f"{PARENT}/trainingPipelines/7"
    job = {"name": name, "state": "JOB_STATE_CANCELLING", "displayName": "killed", "trainingTaskInputs": {}}
    job |= {"createTime": "2026-01-01T00:00:00Z", "updateTime": "2026-01-01T00:00:00Z", "uploadedModel": "m"}
    _, project, _, region = PARENT.split("/")
    call = Call(location=Location(project=project, region=region), resource_id="7")
    store.write("trainingPipelines", "7", job)
    (tmp_path / "other").write_text("w")
    other = {"display_name": "m", "artifact_uri": str(tmp_path / "other"), UPLOADED_BY: "trainingPipelines/8"}
    registry.add(tmp_path, other)
    # It was being cancelled, and another pipeline has added a version of the same model.
    assert pipelines.get(call)["state"] == "PIPELINE_STATE_CANCELLED"
    store.write("trainingPipelines", "7", job)
    registry.add(tmp_path, other | {UPLOADED_BY: "trainingPipelines/7"})
    found = pipelines.get(call)
    assert found["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert found["modelToUpload"] == {"name": f"{PARENT}/models/m", "versionId": "2"}
    assert "uploadedModel" not in found


@pytest.mark.slow
@pytest.mark.soak
def test_a_training_is_cancelled_while_its_packages_are_installed(server: Server, tmp_path: Path) -> None:
    package, word = server.work_dir / "buckets" / "packages" / "slow-1.0.tar.gz", str(tmp_path)
    package.parent.mkdir(parents=True)
    waits = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(300)', {word!r}])"
    with tarfile.open(package, "w:gz") as archive:
        for name, text in (("setup.py", waits), ("PKG-INFO", "Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")):
            entry = tarfile.TarInfo(f"slow-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    body = training("installing", "pass")
    pool = body["trainingTaskInputs"]["workerPoolSpecs"][0]
    del pool["containerSpec"]
    image = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-12.py310:latest"
    pool["pythonPackageSpec"] = {
        "executorImageUri": image,
        "pythonModule": "slow",
        "packageUris": ["gs://packages/slow-1.0.tar.gz"],
    }
    number = create(server, "trainingPipelines", body)
    wait_until(lambda: processes(word))
    server.call("POST", f"trainingPipelines/{number}:cancel", {}).raise_for_status()
    pipeline = ended(server, f"trainingPipelines/{number}")
    assert pipeline["state"] == "PIPELINE_STATE_CANCELLED"
    assert custom_job_of(server, pipeline)["state"] == "JOB_STATE_CANCELLED"
    assert not processes(word)


@pytest.mark.slow
@pytest.mark.soak
def test_jobs_that_ended_with_the_server_are_failed(start_server: Callable[..., Server], tmp_path: Path) -> None:
    server, go = start_server(), str(tmp_path / "go")
    paths = [f"{JOBS[0]}/{create(server, JOBS[0], training('killed', SAVES + UNTIL, go))}"]
    paths += [f"{JOBS[1]}/{create(server, JOBS[1], tuning(UNTIL, go))}"]
    paths += [f"{JOBS[2]}/{create(server, JOBS[2], prediction(upload(server, 'wait')))}"]
    wait_until(lambda: len(processes(go)) == 3)
    wait_until(lambda: [*(server.work_dir / "api" / paths[2]).glob("container.log")])
    left = psutil.Process(server.process.pid).children(recursive=True)
    server.end(signal.SIGKILL)
    server = start_server()
    for each in paths:
        found = ended(server, each)
        assert found["state"].endswith("STATE_FAILED"), found
        assert "create it again" in found["error"]["message"]
        wait_until(lambda each=each: server.call("DELETE", each).status_code == 200)
    wait_until(lambda: all(map(has_ended, left)))
    assert models(server) == ["served"]


@pytest.mark.slow
@pytest.mark.soak
def test_trainings_that_start_at_once_get_a_version_each(server: Server) -> None:
    parent, names = upload(server), [f"at-once-{number}" for number in range(6)]
    numbers: list[str] = []

    def start(name: str) -> None:
        number = create(server, "trainingPipelines", training(name, SAVES) | {"parentModel": parent})
        numbers.append(number)

    threads = [threading.Thread(target=start, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = [ended(server, f"trainingPipelines/{number}") for number in numbers]
    assert {each["state"] for each in found} == {"PIPELINE_STATE_SUCCEEDED"}
    versions = [each["modelToUpload"]["versionId"] for each in found]
    assert sorted(versions, key=int) == [str(number) for number in range(2, 8)]


@pytest.mark.slow
@pytest.mark.soak
def test_a_kill_at_any_time_leaves_records_that_tell_the_truth(start_server: Callable[..., Server]) -> None:
    for delay in (0.0, 0.3, 0.5, 0.8, 1.2):
        server = start_server()
        name = f"killed-{delay}"
        number = create(server, "trainingPipelines", training(name, SAVES))
        time.sleep(delay)
        server.end(signal.SIGKILL)
        server = start_server()
        pipeline = ended(server, f"trainingPipelines/{number}")
        has_succeeded = pipeline["state"] == "PIPELINE_STATE_SUCCEEDED"
        assert has_succeeded == (name in models(server)), pipeline
        if has_succeeded:
            assert custom_job_of(server, pipeline)["state"] == "JOB_STATE_SUCCEEDED"
        server.end(signal.SIGTERM)
