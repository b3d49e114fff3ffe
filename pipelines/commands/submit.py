"""`python -m pipelines submit`: check a compiled pipeline, send it, and watch it."""

import argparse
import json
import sys
from typing import Any, TextIO

from pipelines.jobs.machines import plan_lines
from pipelines.jobs.parameters import given_parameters
from pipelines.jobs.pipeline_job import (
    DEFAULT_FILE,
    JobSettings,
    check,
    definitions,
    job_id,
    pipeline_job,
    read_pipeline,
)
from pipelines.jobs.watch import watch
from pipelines.vertex import Place, add_place, calls, client, message, place_from
from userinput.errors import UserError

CREATE_TIMEOUT_SECONDS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `submit`."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="compiled pipeline (%(default)s)")
    add_place(parser)
    add_job(parser)
    add_parameters(parser)
    parser.add_argument("--wait", action="store_true", help="show the steps until the end; exit code 1 when it failed")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the request, send nothing")


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add the options that set the pipeline's parameters."""
    values = parser.add_argument_group("parameters of the pipeline")
    values.add_argument(
        "--parameter", "-p", metavar="NAME=VALUE", action="append", default=[],
        help="value of one parameter; text as it is, everything else as JSON; may be repeated",
    )  # fmt: skip
    values.add_argument("--parameter-file", metavar="F", help="JSON or YAML object of values; --parameter wins over it")


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the options that every job has."""
    job = parser.add_argument_group("the job")
    job.add_argument("--pipeline-root", metavar="gs://...", default="", help="folder of the outputs")
    job.add_argument("--service-account", metavar="EMAIL", default="", help="account the steps run as")
    job.add_argument("--network", metavar="N", default="", help="VPC network: projects/NUMBER/global/networks/NAME")
    job.add_argument("--kms-key", metavar="K", default="", help="customer-managed key")
    job.add_argument("--labels", metavar="KEY=VALUE,...", default="", help="labels, as gcloud takes them")


def settings_from(options: argparse.Namespace) -> JobSettings:
    """Return the settings that the options ask for."""
    pairs = [text.partition("=") for text in options.labels.split(",") if text]
    for key, separator, _ in pairs:
        if not separator:
            raise UserError(f"--labels has {key!r}; expected KEY=VALUE, several with a comma between them")
    return JobSettings(
        pipeline_root=options.pipeline_root,
        service_account=options.service_account,
        network=options.network,
        kms_key=options.kms_key,
        labels={key: value for key, _, value in pairs},
    )


def run(options: argparse.Namespace) -> int:
    """Submit; return 0, or with `--wait` 1 when the pipeline did not succeed."""
    place, spec = place_from(options), read_pipeline(options.file)
    identifier, settings = job_id(spec), settings_from(options)
    parameters = given_parameters(definitions(spec), options.parameter, options.parameter_file)
    job = pipeline_job(spec, display_name=identifier, parameters=parameters, settings=settings)
    # The request alone is on stdout, so that another program can read it.
    tell(job, place, options, to=sys.stderr if options.dry_run else sys.stdout)
    if options.dry_run:
        print(f"POST {place.url}/v1/{place.parent}/pipelineJobs?pipelineJobId={identifier}", file=sys.stderr)
        print(json.dumps(job, indent=2, ensure_ascii=False))
        return 0
    request = message("PipelineJob", job)
    with calls(place):
        jobs = client(place, "PipelineServiceClient")
        made = jobs.create_pipeline_job(
            parent=place.parent, pipeline_job=request, pipeline_job_id=identifier, timeout=CREATE_TIMEOUT_SECONDS
        )
    print(f"submitted {made.name}", flush=True)
    if not place.is_local:
        print(console_link(place, identifier), flush=True)
    return watched(place, made.name) if options.wait else 0


def tell(job: dict[str, Any], place: Place, options: argparse.Namespace, *, to: TextIO) -> None:
    """Print what the check found and what will run where.

    Raises:
        UserError: The check found errors.
    """
    for finding in check(job, place):
        print(f"warning: {finding.message}", file=to)
    # The job's settings are the pipeline's own steps'; a training job inside it is told by parameters.
    for name in ("service_account", "network", "kms_key"):
        values = job["runtimeConfig"]["parameterValues"]
        if getattr(options, name) and name in definitions(job["pipelineSpec"]) and name not in values:
            flag = name.replace("_", "-")
            print(f"note: --{flag} is for the steps; for the training job add --parameter {name}=...", file=to)
    print(*plan_lines(job, place), sep="\n", file=to, flush=True)


def watched(place: Place, name: str) -> int:
    """Return the exit code of a job, after its end."""
    try:
        return 0 if watch(place, name) else 1
    except KeyboardInterrupt:
        print(f"no longer watched; it goes on: {name}", file=sys.stderr)
        raise


def console_link(place: Place, identifier: str) -> str:
    """Return the address of the run in the console."""
    base = f"https://console.cloud.google.com/vertex-ai/locations/{place.region}/pipelines/runs"
    return f"{base}/{identifier}?project={place.project}"
