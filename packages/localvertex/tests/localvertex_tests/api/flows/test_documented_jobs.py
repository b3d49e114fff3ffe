"""The SDK's jobs as its documentation shows them, with another image, data and bucket where it has placeholders."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import custom_job
from localvertex_tests.support import serving
from localvertex_tests.support.own_environment import users_environment

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

PREBUILT = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-12.py310:latest"

TRAIN = """\
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"])
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.json").write_text(json.dumps({"arguments": sys.argv[1:]}))
print("trained", sys.argv[1:], os.environ.get("SETTING"), sorted(json.loads(os.environ["CLUSTER_SPEC"])["cluster"]))
"""

WAIT = "import time; print('up', flush=True); time.sleep(300)"

TRIAL = """\
import argparse, json, os
parser = argparse.ArgumentParser()
for name in ("lr", "units", "activation", "batch_size"):
    parser.add_argument(f"--{name}")
given = parser.parse_args()
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "a") as file:
    file.write(json.dumps({"loss": str(float(given.lr)), "global_step": "1"}) + "\\n")
"""

SERVING: dict[str, Any] = {
    "model_serving_container_image_uri": "gcr.io/my-trainer/serving:1",
    "model_serving_container_command": ["python", "-P", serving.__file__],
    "model_serving_container_predict_route": "/predict",
    "model_serving_container_health_route": "/health",
}


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Compare the user's packages, programs and settings before and after."""
    before = users_environment()
    yield
    assert users_environment() == before


@pytest.fixture
def credentials(cloud: Any) -> Any:
    """The SDK uploads scripts with the credentials of the job, and not with those of `init`."""
    return cloud.initializer.global_config.credentials


def log_of(server: Server, custom_job: str, replica: str = "workerpool0-0") -> str:
    number = custom_job.rpartition("/")[2]
    return (server.work_dir / "api" / "customJobs" / number / f"{replica}.log").read_text()


def check(server: Server, job: Any, model: Any, arguments: list[str], num_jobs: int = 1) -> str:
    """Check a training with its model, and return its custom job."""
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    assert (model.display_name, model.labels) == ("my-trained-model", {"key": "value"})
    assert job.get_model().resource_name == model.resource_name
    content = json.loads((server.work_dir / "models" / model.name / "1" / "model" / "model.json").read_text())
    assert content == {"arguments": arguments}
    backing = job._gca_resource.training_task_metadata["backingCustomJob"]
    assert server.call("GET", f"customJobs/{backing.rpartition('/')[2]}").json()["state"] == "JOB_STATE_SUCCEEDED"
    return str(backing)


def test_custom_container_training_job(cloud: Any, endpoint: Server, tmp_path: Path) -> None:
    (tmp_path / "run_script.py").write_text(TRAIN)
    job = cloud.CustomContainerTrainingJob(
        display_name="test-train",
        container_uri="gcr.io/my_project_id/my_image_name:tag",
        command=["python3", str(tmp_path / "run_script.py")],
        labels={"key": "value"},
        **SERVING,
    )
    model = job.run(
        args=["--epochs", "2"],
        environment_variables={"SETTING": "my value"},
        replica_count=2,
        machine_type="n1-standard-4",
        timeout=3600,
        restart_job_on_worker_restart=True,
        model_display_name="my-trained-model",
        model_labels={"key": "value"},
    )
    backing = check(endpoint, job, model, ["--epochs", "2"])
    assert "trained ['--epochs', '2'] my value ['workerpool0', 'workerpool1']" in log_of(endpoint, backing)
    found = cloud.CustomContainerTrainingJob.list(filter='display_name="test-train"', order_by="create_time desc")
    assert [each.resource_name for each in found] == [job.resource_name]
    assert "trainingPipelines" in job.resource_name
    assert job.name in job._dashboard_uri()
    assert cloud.CustomContainerTrainingJob.get(job.resource_name).end_time > job.start_time
    job.delete()
    assert cloud.CustomContainerTrainingJob.list() == []


@pytest.mark.soak
def test_custom_training_job(unchanged: None, cloud: Any, endpoint: Server, credentials: Any, tmp_path: Path) -> None:
    (tmp_path / "test_script.py").write_text(TRAIN)
    job = cloud.CustomTrainingJob(
        display_name="test-train",
        script_path=str(tmp_path / "test_script.py"),
        requirements=["numpy"],
        container_uri=PREBUILT,
        labels={"key": "value"},
        credentials=credentials,
        **SERVING,
    )
    model = job.run(replica_count=1, model_display_name="my-trained-model", model_labels={"key": "value"})
    check(endpoint, job, model, [])
    # A second version of the same model.
    again = cloud.CustomTrainingJob(
        display_name="again",
        script_path=str(tmp_path / "test_script.py"),
        container_uri=PREBUILT,
        credentials=credentials,
        **SERVING,
    )
    second = again.run(
        args=["--again"],
        model_display_name="my-trained-model",
        parent_model=model.resource_name,
        is_default_version=False,
        model_version_aliases=["candidate"],
        model_version_description="of the second run",
        sync=False,
    )
    again.wait_for_resource_creation()
    second.wait()
    assert (second.name, second.version_id, second.version_aliases) == (model.name, "2", ["candidate"])
    assert second.version_description == "of the second run"
    assert cloud.Model(model.resource_name).version_id == "1"


@pytest.mark.soak
def test_a_training_is_cancelled_without_a_model(cloud: Any, endpoint: Server) -> None:
    job = cloud.CustomContainerTrainingJob(
        display_name="long", container_uri="python:3.11", command=["python", "-c", WAIT], **SERVING
    )
    reduction = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    job.run(
        machine_type="n1-standard-16",
        accelerator_type="NVIDIA_TESLA_T4",
        accelerator_count=1,
        replica_count=2,
        reduction_server_replica_count=1,
        reduction_server_machine_type="n1-highcpu-16",
        reduction_server_container_uri=reduction,
        scheduling_strategy=custom_job.Scheduling.Strategy.SPOT,
        enable_web_access=True,
        sync=False,
    )
    job.wait_for_resource_creation()
    wait_until(lambda: job._gca_resource.training_task_metadata or job.state is None)
    number = job._gca_resource.training_task_metadata["backingCustomJob"].rpartition("/")[2]
    spec = endpoint.call("GET", f"customJobs/{number}").json()["jobSpec"]
    assert spec["scheduling"]["strategy"] == "SPOT"
    log = endpoint.work_dir / "api" / "customJobs" / number / "workerpool1-0.log"
    wait_until(lambda: log.exists() and "up" in log.read_text())
    job.cancel()
    with pytest.raises(RuntimeError, match="the training pipeline was cancelled"):
        job.wait()
    assert job.state.name == "PIPELINE_STATE_CANCELLED"
    assert not [each for each in cloud.Model.list() if each.display_name == "long-model"]
    cloud.CustomContainerTrainingJob.get(job.resource_name).delete()


@pytest.mark.soak
def test_custom_python_package_training_job(
    unchanged: None, cloud: Any, endpoint: Server, tmp_path: Path, credentials: Any
) -> None:
    from google.cloud.aiplatform.utils import source_utils

    (tmp_path / "task.py").write_text(TRAIN)
    packager = source_utils._TrainingScriptPythonPackager(str(tmp_path / "task.py"))
    address = packager.package_and_copy_to_gcs("gs://my-bucket", credentials=credentials)
    job = cloud.CustomPythonPackageTrainingJob(
        display_name="test-train",
        python_package_gcs_uri=address,
        python_module_name=packager.module_name,
        container_uri=PREBUILT,
        labels={"key": "value"},
        **SERVING,
    )
    model = job.run(replica_count=1, model_display_name="my-trained-model", model_labels={"key": "value"})
    check(endpoint, job, model, [])


@pytest.mark.soak
def test_custom_job_from_local_script(
    unchanged: None, cloud: Any, endpoint: Server, credentials: Any, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    cloud.init(experiment="documented", experiment_tensorboard=False)
    job = cloud.CustomJob.from_local_script(
        display_name="my-custom-job",
        script_path=str(tmp_path / "train.py"),
        container_uri=PREBUILT,
        requirements=["numpy"],
        replica_count=1,
        args=["--dataset", "gs://bucket/data", "--model_output_uri", "gs://bucket/model"],
        credentials=credentials,
    )
    job.run(experiment="documented", service_account="me@local-project.iam.gserviceaccount.com")
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert "trained ['--dataset'" in log_of(endpoint, job.resource_name)


@pytest.mark.soak
def test_hyperparameter_tuning_job(cloud: Any, endpoint: Server, tmp_path: Path) -> None:
    from google.cloud.aiplatform import hyperparameter_tuning as hpt

    worker_pool_specs = [
        {
            "machine_spec": {
                "machine_type": "n1-standard-4",
                "accelerator_type": "NVIDIA_TESLA_T4",
                "accelerator_count": 1,
            },
            "replica_count": 1,
            "container_spec": {
                "image_uri": "gcr.io/my_project_id/my_image_name:tag",
                "command": ["python", "-c", TRIAL],
                "args": [],
            },
        }
    ]
    custom_job = cloud.CustomJob(
        display_name="my_job",
        worker_pool_specs=worker_pool_specs,
        labels={"my_key": "my_value"},
    )
    hp_job = cloud.HyperparameterTuningJob(
        display_name="hp-test",
        custom_job=custom_job,
        metric_spec={"loss": "minimize"},
        parameter_spec={
            "lr": hpt.DoubleParameterSpec(min=0.001, max=0.1, scale="log"),
            "units": hpt.IntegerParameterSpec(min=4, max=128, scale="linear"),
            "activation": hpt.CategoricalParameterSpec(values=["relu", "selu"]),
            "batch_size": hpt.DiscreteParameterSpec(values=[128, 256], scale="linear"),
        },
        max_trial_count=3,
        parallel_trial_count=2,
        labels={"my_key": "my_value"},
    )
    hp_job.run()
    assert hp_job.state.name == "JOB_STATE_SUCCEEDED"
    assert [(each.id, each.state.name) for each in hp_job.trials] == [(str(n), "SUCCEEDED") for n in (1, 2, 3)]
    for each in hp_job.trials:
        chosen = {parameter.parameter_id: parameter.value for parameter in each.parameters}
        assert each.final_measurement.metrics[0].value == pytest.approx(chosen["lr"])
    assert [each.name for each in cloud.HyperparameterTuningJob.list(filter="labels.my_key=my_value")] == [hp_job.name]
    hp_job.delete()
    assert cloud.HyperparameterTuningJob.list() == []


@pytest.mark.soak
def test_batch_prediction_job(cloud: Any, endpoint: Server) -> None:
    bucket = endpoint.work_dir / "buckets" / "example-bucket"
    bucket.mkdir(parents=True)
    (bucket / "instances.jsonl").write_text("".join(f"{json.dumps({'x': n})}\n" for n in range(3)))
    names = {name.removeprefix("model_"): value for name, value in SERVING.items()}
    my_model = cloud.Model.upload(display_name="my-model", **names)
    job = my_model.batch_predict(
        job_display_name="prediction-123",
        gcs_source="gs://example-bucket/instances.jsonl",
        instances_format="jsonl",
        gcs_destination_prefix="gs://example-bucket/output",
        machine_type="n1-standard-4",
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert (job.completion_stats.successful_count, job.completion_stats.failed_count) == (3, 0)
    (results,) = [each for each in job.iter_outputs() if "prediction.results" in each.name]
    lines = [json.loads(line) for line in results.download_as_text().splitlines()]
    assert [each["instance"] for each in lines] == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert all("prediction" in each for each in lines)
    submitted = cloud.BatchPredictionJob.submit(
        job_display_name="prediction-124",
        model_name=my_model.resource_name,
        gcs_source=["gs://example-bucket/*.jsonl"],
        gcs_destination_prefix="gs://example-bucket/output",
        machine_type="n1-standard-4",
    )
    submitted.wait_for_completion()
    assert len(cloud.BatchPredictionJob.list()) == 2
    submitted.delete()
    assert [each.name for each in cloud.BatchPredictionJob.list()] == [job.name]
