"""Custom jobs."""

import sys
from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.cloud import aiplatform
from localvertex_tests.api.flows.transports.flow import flow


def new(name: str, code: str = "", machine: str = "n1-standard-4", **options: Any) -> aiplatform.CustomJob:
    """Build a job of one machine that runs this Python code."""
    pool = {
        "machine_spec": {"machine_type": machine},
        "replica_count": 1,
        "container_spec": {"image_uri": "python:3.11", "command": [sys.executable, "-c", code]},
    }
    return aiplatform.CustomJob(name, worker_pool_specs=[pool], **options)


def unending(name: str) -> aiplatform.CustomJob:
    """Submit a job that does not end by itself."""
    job = new(name, "import time; time.sleep(600)")
    job.submit()
    return job


@flow(["JOB_STATE_SUCCEEDED", ""])
def custom_job_run() -> Any:
    job = new("run")
    job.run()
    return [job.state.name, job.error.message if job.error else ""]


@flow("JOB_STATE_SUCCEEDED")
def custom_job_submit() -> Any:
    job = new("submit")
    job.submit()
    # `wait` does not wait for a submitted job, even on Vertex AI.
    job.wait_for_completion()
    return job.state.name


@flow(RuntimeError)
def custom_job_that_fails() -> Any:
    new("fails", "raise SystemExit(3)").run()


@flow(RuntimeError)
def custom_job_cancel() -> Any:
    job = unending("cancelled")
    job.cancel()
    # As on Vertex AI, the SDK takes a cancelled job for a failed one.
    job.wait_for_completion()


def from_script(**options: Any) -> str:
    """Run a script."""
    Path("script.py").write_text("print(3)\n")
    image = "us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-0:latest"
    job = aiplatform.CustomJob.from_local_script("script", "script.py", image, **options)
    job.run()
    return job.state.name


@flow("JOB_STATE_SUCCEEDED")
def custom_job_from_local_script() -> Any:
    return from_script(credentials=aiplatform.initializer.global_config.credentials)


@flow(exceptions.Forbidden)
def custom_job_from_local_script_without_credentials() -> Any:
    # docs/other-tools.md: the SDK uploads the script with the credentials of the call only.
    from_script()


@flow(exceptions.InvalidArgument)
def custom_job_with_a_wrong_machine() -> Any:
    new("wrong", machine="n1-standard-3").run()


@flow(["labelled"])
def custom_job_list_by_label() -> Any:
    new("labelled", labels={"team": "vision"}).run()
    return [each.display_name for each in aiplatform.CustomJob.list(filter="labels.team=vision")]


@flow("COMPLETE")
def custom_job_with_an_experiment_run() -> Any:
    aiplatform.ExperimentRun.create("first", experiment=aiplatform.Experiment.create("of-custom-jobs").name)
    new("in-experiment").run(experiment="of-custom-jobs", experiment_run="first")
    return aiplatform.ExperimentRun("first", "of-custom-jobs").get_state()


@flow(exceptions.FailedPrecondition)
def custom_job_delete_while_running() -> Any:
    job = unending("deleted-early")
    try:
        job.delete()
    finally:
        job.cancel()


@flow(exceptions.NotFound)
def custom_job_delete() -> Any:
    job = new("deleted")
    job.run()
    job.delete()
    aiplatform.CustomJob.get(job.resource_name)


@flow(exceptions.NotFound)
def custom_job_get_that_is_missing() -> Any:
    aiplatform.CustomJob.get("123")


@flow(None)
def custom_training_job_trains() -> Any:
    command = [sys.executable, "-c", ""]
    aiplatform.CustomContainerTrainingJob("training", "python:3.11", command).run(machine_type="n1-standard-4")


@flow(exceptions.InvalidArgument)
def hyperparameter_tuning_without_parameters_is_refused() -> Any:
    aiplatform.HyperparameterTuningJob(
        "tuning", new("trial"), {"loss": "minimize"}, {}, max_trial_count=1, parallel_trial_count=1
    ).run()


@flow(exceptions.InvalidArgument)
def batch_prediction_is_refused() -> Any:
    aiplatform.BatchPredictionJob.create(
        job_display_name="batch",
        model_name="projects/local-project/locations/us-central1/models/1",
        gcs_source="gs://staging/in.jsonl",
        gcs_destination_prefix="gs://staging/out",
    )


@flow(exceptions.MethodNotImplemented)
def dataset_is_refused() -> Any:
    aiplatform.TabularDataset.create("rows", gcs_source="gs://staging/rows.csv")


@flow(exceptions.MethodNotImplemented)
def feature_store_is_refused() -> Any:
    aiplatform.Featurestore.create("features")


@flow(exceptions.MethodNotImplemented)
def vector_search_is_refused() -> Any:
    aiplatform.MatchingEngineIndex.list()
