"""`python -m pipelines submit`: checks a compiled pipeline, submits it and watches it."""

import argparse
import json
import sys
from typing import Any, TextIO

from localvertex._base.compiled.parameters import read_given
from localvertex._base.userinput.errors import UserError
from pipelines.calls import calls, created_name
from pipelines.jobs.machines import plan_lines
from pipelines.jobs.pipeline_job import (
    DEFAULT_FILE,
    JOB_SETTINGS,
    JobSettings,
    check,
    compiled_settings,
    declared_parameters,
    job_id,
    pipeline_job,
    read_spec,
)
from pipelines.jobs.watch import watch
from pipelines.vertex import Location, add_location, client, location_from, message

_CREATE_TIMEOUT_SECONDS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `submit`."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="compiled pipeline (%(default)s)")
    add_location(parser)
    job = parser.add_argument_group("job")
    job.add_argument("--pipeline-root", metavar="gs://...", default="", help="folder for the outputs")
    job.add_argument("--service-account", metavar="EMAIL", default="", help="account that the steps run as")
    job.add_argument("--network", metavar="N", default="", help="VPC network: projects/NUMBER/global/networks/NAME")
    job.add_argument("--kms-key", metavar="K", default="", help="customer-managed encryption key")
    job.add_argument("--labels", metavar="KEY=VALUE,...", default="", help="labels, separated by commas")
    parameters = parser.add_argument_group("parameters of the pipeline")
    parameters.add_argument(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="value of one parameter (repeatable): plain text or @FILE for strings (@@ for a leading @), JSON for all"
        " other types",
    )
    parameters.add_argument(
        "--parameter-file", metavar="F", help="JSON or YAML file of values; --parameter overrides it"
    )
    parser.add_argument("--wait", action="store_true", help="watch the run until it ends; exit with 1 if it failed")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and the request without submitting")


def _settings(options: argparse.Namespace) -> JobSettings:
    """Return the job settings from the options.

    Raises:
        UserError: A value is not valid.
    """
    pairs = [text.partition("=") for text in options.labels.split(",") if text]
    for key, separator, _ in pairs:
        if not separator:
            raise UserError(f"--labels has {key!r}; expected KEY=VALUE, separated by commas")
    return JobSettings(
        **{name: getattr(options, name) for name in JOB_SETTINGS}, labels={key: value for key, _, value in pairs}
    )


def run(options: argparse.Namespace) -> int:
    """Submit the pipeline.

    Returns:
        The exit code: 0, or 1 if `--wait` is given and the pipeline did not succeed.
    """
    location, spec = location_from(options), read_spec(options.file)
    identifier, settings = job_id(spec), _settings(options)
    parameters = read_given(declared_parameters(spec), options.parameter, options.parameter_file)
    job = pipeline_job(spec, display_name=identifier, parameters=parameters, settings=settings)
    # With --dry-run stdout has only the request, so that another program can read it.
    _report(job, location, options, to=sys.stderr if options.dry_run else sys.stdout)
    if options.dry_run:
        print(f"POST {location.url}/v1/{location.parent}/pipelineJobs?pipelineJobId={identifier}", file=sys.stderr)
        print(json.dumps(job, indent=2, ensure_ascii=False))
        return 0
    request = message("PipelineJob", job)
    page = location.run_page(identifier)
    lost = f"{identifier} may be running: look at {page} before you submit again"
    with calls(location, if_lost=lost):
        jobs = client(location, "PipelineServiceClient")
        created = jobs.create_pipeline_job(
            parent=location.parent, pipeline_job=request, pipeline_job_id=identifier, timeout=_CREATE_TIMEOUT_SECONDS
        )
    name = created_name(created, location, if_lost=lost)
    print(f"submitted {name}", flush=True)
    if not location.is_local:
        print(page, flush=True)
    try:
        return 0 if not options.wait or watch(location, name) else 1
    except KeyboardInterrupt:
        print(f"stopped watching; the pipeline is still running: {name}", file=sys.stderr)
        raise


def _report(job: dict[str, Any], location: Location, options: argparse.Namespace, *, to: TextIO) -> None:
    """Print the findings of the check, and which machines the job requests.

    Raises:
        UserError: The service would refuse the job.
    """
    for finding in check(job, location):
        print(f"warning: {finding.message}", file=to)
    for name, value in compiled_settings(job).items():
        if getattr(options, name, "") and not value:
            flag = name.replace("_", "-")
            print(f"note: --{flag} applies to the steps; for the training job set {name} in --settings", file=to)
    print(*plan_lines(job, location), sep="\n", file=to, flush=True)
