"""`python -m pipelines custom-job`: runs the training job of the step `plan`, without its pipeline."""

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
from components.plan.training_plan import TrainingPlan
from localvertex_base.compiled.reader import read_pipeline
from localvertex_base.userinput import paths
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.parameters import convert_all, read_given
from localvertex_base.userinput.spelling import camel, join_or
from pipelines.calls import calls, created_name
from pipelines.commands.submit import add_job, add_parameters, settings_from
from pipelines.jobs.pipeline_job import DEFAULT_FILE, JobSettings, check, declared_parameters, pipeline_job, read_spec
from pipelines.jobs.watch import log_command
from pipelines.vertex import Location, add_location, client, location_from, message
from trainer.models.references import is_reference

_PLAN = "plan"
"""Name of the step that plans the training job."""


@dataclass(frozen=True, kw_only=True)
class _Artifact:
    """An artifact of the step: a local path or a gs:// address, not mounted as it would be on Vertex AI."""

    path: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `custom-job`."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="compiled pipeline (%(default)s)")
    parser.add_argument(
        "--dataset", metavar="D", required=True, help="dataset folder, written by `python -m trainer.prepare`"
    )
    add_location(parser)
    add_job(parser)
    add_parameters(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the job without submitting")


def run(options: argparse.Namespace) -> int:
    """Submit the training job, or print it.

    Returns:
        The exit code 0.
    """
    paths.check("--dataset", options.dataset)
    location, spec, settings = location_from(options), read_spec(options.file), settings_from(options)
    parameters = read_given(declared_parameters(spec), options.parameter, options.parameter_file)
    pipeline = pipeline_job(spec, display_name=_PLAN, parameters=parameters, settings=settings)
    for finding in check(pipeline, location):
        print(f"warning: {finding.message}", file=sys.stderr)
    root = pipeline["runtimeConfig"].get("gcsOutputDirectory")
    if not root:
        raise UserError("no pipeline root given; add --pipeline-root gs://MY-BUCKET/pipelines")
    inputs = _plan_inputs(pipeline) | {"region": location.region}
    if is_reference(inputs.get("weights", "")):
        raise UserError(
            f"weights={inputs['weights']!r} is resolved in the pipeline root, which custom-job does not read; submit"
            " the pipeline instead"
        )
    if not options.dry_run:
        _check_readable(options.dataset, location)
    dataset = (
        os.path.abspath(options.dataset) if location.is_local and "://" not in options.dataset else options.dataset
    )
    job = _custom_job(_plan(inputs, dataset=dataset, pipeline_root=root), inputs, settings)
    if options.dry_run:
        print(json.dumps(job, indent=2, ensure_ascii=False))
    else:
        _submit(job, location)
    return 0


def _check_readable(dataset: str, location: Location) -> None:
    if not location.is_local and not dataset.startswith(("gs://", "/gcs/")):
        raise UserError(
            f"--dataset is {dataset!r}, which Google's machines cannot read; copy it to a bucket, or prepare it there:"
            f" python -m trainer.prepare SOURCE gs://MY-BUCKET/{os.path.basename(dataset.rstrip('/'))}"
        )
    # Fail early: without credentials the dataset cannot be read either, and the storage library's error is unclear.
    client(location, "JobServiceClient")


def _plan_inputs(job: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of the step `plan` of a pipeline job, with their declared types.

    Raises:
        UserError: The pipeline has no step `plan`.
    """
    pipeline = read_pipeline(job["pipelineSpec"])
    graph = Graph(pipeline=pipeline, parameters=job["runtimeConfig"]["parameterValues"])
    steps = {each.name: each for each in graph.steps()}
    if _PLAN not in steps:
        raise UserError(f"the pipeline has no step {_PLAN!r}; custom-job needs a file from `python compile.py`")
    declared = pipeline.components[f"comp-{_PLAN}"].input_parameters
    return convert_all(declared, {name: steps[_PLAN].inputs[name].value for name in declared})


def _plan(inputs: dict[str, Any], *, dataset: str, pipeline_root: str) -> TrainingPlan:
    """Run the step `plan` on its inputs and a dataset.

    The step gets an empty folder as the pipeline root, so it does not find out whether the run is finished. That would
    need the bucket and credentials, and the trainer ends at once if the run is finished.

    Raises:
        UserError: The file was compiled for a step with fewer inputs.
    """
    from components.plan.plan import plan as step

    if missing := sorted(set(step.component_spec.inputs) - set(inputs) - {"dataset"}):
        raise UserError(f"the pipeline has no {join_or(missing, 'and')}; compile it again with `python compile.py`")
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(sys.stderr):
        report = _Artifact(path=str(Path(scratch) / "plan.html"))
        local = inputs | {"pipeline_root": scratch}
        planned: TrainingPlan = step.python_func(dataset=_Artifact(path=dataset), report=report, **local)
    return planned._replace(base_output_directory=f"{pipeline_root.rstrip('/')}/training/{planned.run_id}")


def _custom_job(planned: TrainingPlan, inputs: dict[str, Any], settings: JobSettings) -> dict[str, Any]:
    """Return the CustomJob in the format of the REST API; options override the settings of the compiled file."""
    strategy, compiled = inputs["scheduling_strategy"], inputs["settings"]
    spec: dict[str, Any] = {
        "workerPoolSpecs": _camel(planned.worker_pool_specs),
        "scheduling": {
            "timeout": planned.timeout,
            "restartJobOnWorkerRestart": planned.restart_job_on_worker_restart,
            "strategy": strategy,
            # The API accepts a limit of the wait only there.
            **({"maxWaitDuration": planned.max_wait_duration} if strategy == "FLEX_START" else {}),
        },
        "persistentResourceId": planned.persistent_resource_id,
        "serviceAccount": settings.service_account or compiled["service_account"],
        "network": settings.network or compiled["network"],
        "tensorboard": compiled["tensorboard"],
        "baseOutputDirectory": {"outputUriPrefix": planned.base_output_directory},
    }
    key = settings.kms_key or compiled["kms_key"]
    job = {
        "displayName": planned.display_name,
        "jobSpec": {name: value for name, value in spec.items() if value},
        "labels": dict(settings.labels),
        "encryptionSpec": {"kmsKeyName": key} if key else {},
    }
    return {name: value for name, value in job.items() if value}


def _camel(value: Any) -> Any:
    """Return a value with the keys of its objects in camelCase, as in the REST API."""
    if isinstance(value, dict):
        return {camel(key): _camel(inner) for key, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list) else value


def _submit(job: dict[str, Any], location: Location) -> None:
    """Create the job and print its name, its URL in the console and the command that prints its log.

    Raises:
        CallFailed: The service refused the job or could not be reached.
    """
    request = message("CustomJob", job)
    lost = f"{job['displayName']} may be running: look at {location.custom_jobs_page} before you submit again"
    with calls(location, if_lost=lost):
        created = client(location, "JobServiceClient").create_custom_job(
            parent=location.parent, custom_job=request, timeout=120
        )
    name = created_name(created, location, if_lost=lost)
    print(f"submitted {name}")
    if not location.is_local:
        number, base = name.rpartition("/")[2], "https://console.cloud.google.com/vertex-ai/locations"
        print(
            f"{base}/{location.region}/training/{number}?project={location.project}",
            log_command(location, name),
            sep="\n",
        )
