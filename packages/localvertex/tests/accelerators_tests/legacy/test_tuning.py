"""Tuning jobs: no trial may get another trial's folder, and ids are what the service takes."""

from typing import Any

import pytest
from accelerators_tests.legacy.conftest import remarks, run

TUNING = {"params": [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1}]}


def tuning(**training: Any) -> dict[str, Any]:
    machine = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "masterConfig": {"imageUri": "eu.gcr.io/p/i:1"}}
    return {"trainingInput": machine | {"hyperparameters": TUNING} | training}


def test_no_trial_gets_the_folder_of_another_one() -> None:
    done = run(tuning(jobDir="gs://b/j", args=["--epochs=5"]))
    spec = done.job["trial_job_spec"]
    assert spec["worker_pool_specs"][0]["container_spec"]["args"] == ["--epochs=5"]
    assert spec["base_output_directory"] == {"output_uri_prefix": "gs://b/j"}, "Vertex AI adds the trial to it"
    assert "AIP_MODEL_DIR and AIP_CHECKPOINT_DIR" in remarks(done, "decide", "jobDir")[0]
    assert "CLOUD_ML_TRIAL_ID" in remarks(done, "doubtful", "TF_CONFIG")[0]


@pytest.mark.parametrize(
    "training",
    [
        {"args": ["--job-dir", "gs://b/j"]},
        {"masterConfig": {"imageUri": "eu.gcr.io/p/i:1", "containerArgs": ["--job-dir=gs://b/j"]}},
    ],
)
def test_a_folder_among_the_users_arguments_is_a_decision(training: dict[str, Any]) -> None:
    assert "every trial gets this same folder" in remarks(run(tuning(**training)), "decide", "jobDir")[0]


def test_a_command_line_adds_no_folder_either() -> None:
    done = run(tuning(), "gcloud ai-platform jobs submit training j --job-dir gs://b/j -- --epochs 5")
    assert done.job["trial_job_spec"]["worker_pool_specs"][0]["container_spec"]["args"] == ["--epochs", "5"]


def test_ids_with_whitespace_are_decisions() -> None:
    param = {"parameterName": "learning rate", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1}
    done = run(tuning(hyperparameters={"hyperparameterMetricTag": "val loss", "params": [param]}))
    assert "which Vertex AI refuses" in remarks(done, "decide", "hyperparameters.hyperparameterMetricTag")[0]
    assert "which Vertex AI refuses" in remarks(done, "decide", "hyperparameters.params[0].parameterName")[0]
