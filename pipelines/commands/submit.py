"""`python -m pipelines submit`: check a compiled pipeline, send it, and watch it."""

import argparse
import json

from components.mistakes import Mistake
from pipelines.parameters import given_parameters
from pipelines.pipeline_job import DEFAULT_FILE, JobSettings, check, definitions, job_id, pipeline_job, read_pipeline
from pipelines.vertex import add_place, calls, client, message, place_from


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `submit`."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="compiled pipeline (%(default)s)")
    add_place(parser)
    add_job(parser)
    values = parser.add_argument_group("parameters of the pipeline")
    values.add_argument(
        "--parameter", "-p", metavar="NAME=VALUE", action="append", default=[],
        help="value of one parameter; text as it is, everything else as JSON; may be repeated",
    )  # fmt: skip
    values.add_argument("--parameter-file", metavar="F", help="JSON or YAML object of values; --parameter wins over it")
    parser.add_argument("--wait", action="store_true", help="show the steps until the end; exit code 1 when it failed")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the request, send nothing")


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
            raise Mistake(f"--labels has {key!r}; expected KEY=VALUE, several with a comma between them")
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
    identifier = job_id(spec)
    parameters = given_parameters(definitions(spec), options.parameter, options.parameter_file)
    job = pipeline_job(spec, display_name=identifier, parameters=parameters, settings=settings_from(options))
    for finding in check(job, place):
        print(f"warning: {finding.message}")
    if options.dry_run:
        print(json.dumps(job, indent=2))
        return 0
    with calls(place):
        jobs = client(place, "PipelineServiceClient")
        made = jobs.create_pipeline_job(
            parent=place.parent, pipeline_job=message("PipelineJob", job), pipeline_job_id=identifier
        )
    print(made.name)
    return 0
