"""A pipeline with one tuning job, and a training program that reports as Google's cloudml-hypertune does."""

import json
from pathlib import Path
from typing import Any

from google_cloud_pipeline_components.v1.hyperparameter_tuning_job import HyperparameterTuningJobRunOp
from kfp import dsl

NAME = "hyperparameter-tuning-job"
"""The name of its task."""

PROGRAM = """
import json, os, pathlib, sys, time
given = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
folder, trial = pathlib.Path(os.environ["TEST_FOLDER"]), os.environ.get("CLOUD_ML_TRIAL_ID", "final")
names = ("AIP_MODEL_DIR", "AIP_CHECKPOINT_DIR", "CLUSTER_SPEC", "CLOUD_ML_TRIAL_ID", "CUDA_VISIBLE_DEVICES")
seen = {name: os.environ.get(name) for name in names}
with (folder / f"start-{trial}").open("a") as file:
    file.write(json.dumps([sys.argv[1:], seen]) + "\\n")
lines = []

def report(name, value, step):
    # As HyperTune.report_hyperparameter_tuning_metric of cloudml-hypertune 0.1.0.dev6 does.
    lines.append({"timestamp": time.time(), "trial": trial, name: str(float(value)), "global_step": str(step),
                  "checkpoint_path": ""})
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
        for line in lines:
            file.write(json.dumps(line, sort_keys=True) + "\\n")

def wait_for(path):
    while not path.exists():
        time.sleep(0.02)
"""
"""The start of each program: `given` are its parameters; each start leaves a line in `start-<trial>`."""

UNITS = {"parameter_id": "units", "integer_value_spec": {"min_value": 1, "max_value": 3}, "scale_type": 1}
KIND = {"parameter_id": "kind", "categorical_value_spec": {"values": ["a", "b"]}, "scale_type": 0}
RATE = {"parameter_id": "rate", "double_value_spec": {"min_value": 1e-4, "max_value": 1e-1}, "scale_type": 2}
ACCURACY = {"metric_id": "accuracy", "goal": 1}


def pool(code: str, folder: Any, **machine: Any) -> dict[str, Any]:
    """A worker pool of one replica that runs the program and then this code."""
    container = {
        "image_uri": "python:3.11",
        "command": ["python", "-c", PROGRAM + code],
        "env": [{"name": "TEST_FOLDER", "value": str(folder)}],
    }
    machine_spec = {"machine_type": "n1-standard-4", **machine}
    return {"machine_spec": machine_spec, "replica_count": 1, "container_spec": container}


def trials_of(work_dir: Path, run_id: str) -> list[dict[str, Any]]:
    """Return the trials of the job in a run."""
    content = json.loads((work_dir / run_id / NAME / "hyperparameter_tuning_job.json").read_text())
    trials: list[dict[str, Any]] = content["trials"]
    return trials


def starts(folder: Path) -> dict[int, list[list[Any]]]:
    """Return the arguments and variables of each start, by trial."""
    return {
        int(path.name.removeprefix("start-")): [json.loads(line) for line in path.read_text().splitlines()]
        for path in folder.glob("start-*")
    }


@dsl.pipeline(name="tune")
def tune(
    pools: list,
    parameters: list,
    metrics: list = [ACCURACY],  # noqa: B006
    algorithm: str = "GRID_SEARCH",
    selection: str = "BEST_MEASUREMENT",
    base: str = "",
    trials: int = 6,
    parallel: int = 2,
    failures: int = 0,
) -> str:
    job = HyperparameterTuningJobRunOp(
        display_name="search",
        base_output_directory=base,
        worker_pool_specs=pools,
        study_spec_metrics=metrics,
        study_spec_parameters=parameters,
        max_trial_count=trials,
        parallel_trial_count=parallel,
        max_failed_trial_count=failures,
        study_spec_algorithm=algorithm,
        study_spec_measurement_selection_type=selection,
        location="{{$.pipeline_google_cloud_location}}",
    )
    return job.outputs["gcp_resources"]
