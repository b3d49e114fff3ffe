"""`python -m pipelines custom-job`: the training job that the step `plan` would make, without its pipeline."""

import argparse
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerators.pipeline.graph import Graph
from pipelines.commands.submit import add_job, add_parameters, settings_from
from pipelines.jobs.parameters import given_parameters, typed
from pipelines.jobs.pipeline_job import DEFAULT_FILE, JobSettings, check, definitions, pipeline_job, read_pipeline
from pipelines.jobs.watch import log_command
from pipelines.vertex import Place, add_place, calls, client, message, place_from
from training_job.plan import TrainingPlan
from userinput.errors import UserError
from userinput.spelling import camel

PLAN = "plan"
"""Name of the step whose inputs decide over the job."""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Stands for an artifact of the step: a path or gs:// address, not mounted as it would be on Vertex AI."""

    path: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `custom-job`."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="compiled pipeline (%(default)s)")
    parser.add_argument("--dataset", metavar="D", required=True, help="folder made by `python -m trainer.prepare`")
    add_place(parser)
    add_job(parser)
    add_parameters(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the job, send nothing")


def run(options: argparse.Namespace) -> int:
    """Print or submit the job; return 0."""
    place, spec, settings = place_from(options), read_pipeline(options.file), settings_from(options)
    parameters = given_parameters(definitions(spec), options.parameter, options.parameter_file)
    whole = pipeline_job(spec, display_name=PLAN, parameters=parameters, settings=settings)
    for finding in check(whole, place):
        print(f"warning: {finding.message}", file=sys.stderr)
    root = whole["runtimeConfig"].get("gcsOutputDirectory")
    if not root:
        raise UserError("no pipeline root is given; add --pipeline-root gs://MY-BUCKET/pipelines")
    inputs = plan_inputs(whole) | {"region": place.region}
    if not options.dry_run:
        _check_reach(options.dataset, place)
    dataset = os.path.abspath(options.dataset) if place.is_local and "://" not in options.dataset else options.dataset
    job = custom_job(plan(inputs, dataset=dataset, pipeline_root=root), inputs, settings)
    if options.dry_run:
        print(json.dumps(job, indent=2, ensure_ascii=False))
    else:
        submit(job, place)
    return 0


def _check_reach(dataset: str, place: Place) -> None:
    if not place.is_local and not dataset.startswith(("gs://", "/gcs/")):
        raise UserError(
            f"--dataset is {dataset!r}, which no machine of Google's can read; copy it into a bucket, or prepare it"
            f" there: python -m trainer.prepare SOURCE gs://MY-BUCKET/{os.path.basename(dataset.rstrip('/'))}"
        )
    # Now: without credentials the dataset could not be read either, and the storage library says so less clearly.
    client(place, "JobServiceClient")


def plan_inputs(job: dict[str, Any]) -> dict[str, Any]:
    """Return the values that the step `plan` of a pipeline job gets, typed as it declares them.

    Raises:
        UserError: The pipeline has no such step.
    """
    spec = job["pipelineSpec"]
    steps = {each.name: each for each in Graph(spec=spec, parameters=job["runtimeConfig"]["parameterValues"]).steps()}
    if PLAN not in steps:
        raise UserError(f"the pipeline has no step {PLAN!r}; custom-job is for files that `python compile.py` wrote")
    declared = definitions({"root": spec["components"][f"comp-{PLAN}"]})
    return typed(declared, {name: steps[PLAN].inputs[name].value for name in declared})


def plan(inputs: dict[str, Any], *, dataset: str, pipeline_root: str) -> TrainingPlan:
    """Return what the step's own code makes of these inputs and a dataset.

    Whether the run is finished is not looked up: that would take the bucket and credentials, and the trainer ends at
    once where it is. So the step sees an empty folder as the root.
    """
    # The dataset's description in a bucket is read through TensorFlow, which has much to say when it is imported.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from components.plan import plan as step

    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(sys.stderr):
        report = Folder(path=str(Path(scratch) / "plan.html"))
        here = inputs | {"pipeline_root": scratch}
        planned: TrainingPlan = step.python_func(dataset=Folder(path=dataset), report=report, **here)
    return planned._replace(base_output_directory=f"{pipeline_root.rstrip('/')}/training/{planned.run_id}")


def custom_job(planned: TrainingPlan, inputs: dict[str, Any], settings: JobSettings) -> dict[str, Any]:
    """Return the CustomJob as the REST API takes it; settings of the command line win over the parameters."""
    spec: dict[str, Any] = {
        "workerPoolSpecs": _camel(planned.worker_pool_specs),
        "scheduling": {
            "timeout": planned.timeout,
            "restartJobOnWorkerRestart": planned.restart_job_on_worker_restart,
            "strategy": inputs["scheduling_strategy"],
        },
        "serviceAccount": settings.service_account or inputs["service_account"],
        "network": settings.network or inputs["network"],
        "tensorboard": inputs["tensorboard"],
        "baseOutputDirectory": {"outputUriPrefix": planned.base_output_directory},
    }
    key = settings.kms_key or inputs["kms_key"]
    job = {
        "displayName": planned.display_name,
        "jobSpec": {name: value for name, value in spec.items() if value},
        "labels": dict(settings.labels),
        "encryptionSpec": {"kmsKeyName": key} if key else {},
    }
    return {name: value for name, value in job.items() if value}


def _camel(value: Any) -> Any:
    """Return components' snake_case fields as the REST API documents them."""
    if isinstance(value, dict):
        return {camel(key): _camel(inner) for key, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list) else value


def submit(job: dict[str, Any], place: Place) -> None:
    """Create the job and say where it is.

    Raises:
        CallFailed: The service refused it or was not reached.
    """
    request = message("CustomJob", job)
    with calls(place):
        made = client(place, "JobServiceClient").create_custom_job(parent=place.parent, custom_job=request, timeout=120)
    print(f"submitted {made.name}")
    if not place.is_local:
        number, base = made.name.rpartition("/")[2], "https://console.cloud.google.com/vertex-ai/locations"
        print(
            f"{base}/{place.region}/training/{number}?project={place.project}", log_command(place, made.name), sep="\n"
        )
