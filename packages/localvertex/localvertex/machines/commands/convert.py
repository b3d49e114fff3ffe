"""`python -m localvertex machines convert`: a job of AI Platform Training as a Vertex AI custom job."""

import json
import shlex
import sys
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.nested import changed
from localvertex._base.userinput import cli
from localvertex._base.userinput.reading import display, parse_all, read_bytes
from localvertex._base.userinput.spelling import camel
from localvertex.machines.legacy.command_line import Command, read_command
from localvertex.machines.legacy.convert import Conversion, convert
from localvertex.machines.legacy.report import LegacyInputError, Report

_DESCRIPTION = """\
AI Platform Training was shut down on 2025-01-31. Convert a config.yaml, a
command line (`gcloud ai-platform jobs submit training` or `gcloud ml-engine
...`), or both into a Vertex AI CustomJob. The job is printed as YAML on stdout,
and a report of what was changed or dropped, and why, on stderr."""
_EPILOGUE = """\
exit codes: 0 success, 1 converted, but with decisions left to you (marked
"decide"), 2 invalid input

examples:
  python -m localvertex machines convert config.yaml > job.yaml
  python -m localvertex machines convert config.yaml --replace-retired -- \\
      gcloud ai-platform jobs submit training my_job --config config.yaml \\
      --module-name trainer.task --package-path trainer --region us-central1 \\
      -- --epochs 5"""


def run(arguments: list[str]) -> int:
    """Convert the job in the arguments; print the result and a report.

    Returns:
        0 converted, 1 converted with open decisions, 2 if the input is wrong.
    """
    own, words = _split(arguments)
    made = cli.Parser("python -m localvertex machines convert", description=_DESCRIPTION, epilog=_EPILOGUE)
    made.usage = "%(prog)s [options] [config.yaml] [-- gcloud ai-platform jobs submit training ... [-- args]]"
    made.add_argument("config", nargs="?", metavar="config.yaml", help="config file of the job; - for standard input")
    made.add_argument("--replace-retired", action="store_true", help="replace K80 and P100 with current GPUs")
    made.add_argument(
        "--gcloud", action="store_true", help="print the job_spec in camelCase, for gcloud ai custom-jobs create"
    )
    options = made.parse_args(own)
    if not options.config and not words:
        made.error("nothing to convert: give a config.yaml, a command line after --, or both")
    report = Report()
    try:
        command = read_command(words, report) if words else None
        document = _document(options.config, command, report)
        conversion = convert(document, command, report=report, replace_retired=options.replace_retired)
    except LegacyInputError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return cli.WRONG_INPUT
    print(_as_yaml(changed(conversion.job["job_spec"], change_key=camel) if options.gcloud else conversion.job), end="")
    sys.stdout.flush()
    if options.gcloud and {} in conversion.job["job_spec"]["worker_pool_specs"]:
        report.add("decide", "worker pools", "gcloud refuses an unused pool {}; submit the job without --gcloud")
    _print_report(conversion)
    if options.gcloud:
        print(f"submit it with: {_command(conversion)}", file=sys.stderr)
    return cli.FAILED if conversion.needs_decision else cli.DONE


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split at the first "--", or at gcloud if the command was pasted without it."""
    for index, word in enumerate(arguments):
        if word == "--":
            return arguments[:index], arguments[index + 1 :]
        if word == "gcloud" or word.startswith("gcloud "):
            return arguments[:index], arguments[index:]
    return arguments, []


def _document(path: str | None, command: Command | None, report: Report) -> Any:
    named = command.config if command is not None else ""
    if path and named and named.removeprefix("./") != path.removeprefix("./"):
        report.add("doubtful", "--config", f"{path} was read instead of {named}")
    if not (path or named):
        return None
    # gcloud reads even a JSON file as YAML, which allows a comma after the last item.
    data = read_bytes(path or named)
    return next(iter(parse_all(data, display(path or named), may_be_yaml=True)), None) or {}


def _command(conversion: Conversion) -> str:
    """Return the command that submits the printed job_spec."""
    job = conversion.job
    flags = [f"--region={conversion.region or 'REGION'}", f"--display-name={job['display_name']}", "--config=FILE"]
    if "labels" in job:
        flags.append("--labels=" + ",".join(f"{key}={value}" for key, value in job["labels"].items()))
    if "encryption_spec" in job:
        flags.append(f"--kms-key={job['encryption_spec']['kms_key_name']}")
    return shlex.join(["gcloud", "ai", "custom-jobs", "create", *flags])


def _as_yaml(value: JsonObject) -> str:
    import yaml  # only convert needs PyYAML to print

    # A copy: YAML would write a list that several pools share as an alias.
    copy = json.loads(json.dumps(value))
    return str(yaml.safe_dump(copy, sort_keys=False, allow_unicode=True, width=1000))


def _print_report(conversion: Conversion) -> None:
    for remark in conversion.report.remarks:
        print(f"{remark.kind:<8}  {remark.field}: {remark.message}", file=sys.stderr)
    for finding in conversion.findings:
        at = f"[{finding.rule}] at {finding.path}{finding.nearest}"
        print(f"check     {finding.severity}: {finding.message} {at}", file=sys.stderr)
    errors = sum(finding.severity == "error" for finding in conversion.findings)
    verdict = "passes check" if not errors else f"does not pass check ({errors} error{'s' * (errors != 1)})"
    decisions = sum(remark.kind == "decide" for remark in conversion.report.remarks)
    left = f"; {decisions} decision{'s' * (decisions != 1)} left to you" if decisions else ""
    print(f"converted; the job {verdict}{left}", file=sys.stderr)
