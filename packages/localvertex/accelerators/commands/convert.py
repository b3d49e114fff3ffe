"""`python -m accelerators convert`: a job of AI Platform Training as a Vertex AI custom job."""

import argparse
import json
import shlex
import sys
from typing import Any

from accelerators.commands.options import add_today, parser, tables
from accelerators.legacy.command_line import Command, read_command
from accelerators.legacy.convert import Conversion, convert
from accelerators.legacy.report import LegacyInputError, Report
from localvertex_base.userinput import cli
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import display, parse_all, read_bytes
from localvertex_base.userinput.spelling import camel

_DESCRIPTION = """\
AI Platform Training was shut down on 2025-01-31. Convert a config.yaml, a
command line (`gcloud ai-platform jobs submit training` or `gcloud ml-engine
...`), or both into a Vertex AI CustomJob. The job is printed as YAML on stdout,
and a report of what was changed or dropped, and why, on stderr."""
_EPILOGUE = """\
exit codes: 0 success, 1 converted, but with decisions left to you (marked
"decide"), 2 invalid input

examples:
  python -m accelerators convert config.yaml > job.yaml
  python -m accelerators convert config.yaml --replace-retired -- \\
      gcloud ai-platform jobs submit training my_job --config config.yaml \\
      --module-name trainer.task --package-path trainer --region us-central1 \\
      -- --epochs 5
  python -m accelerators convert config.yaml --pipeline-settings > project.yaml"""

# The keys below these are names that the user chose, not fields.
_MAPS = ("labels",)


def run(arguments: list[str]) -> int:
    """Convert the job in the arguments; print the result and a report.

    Returns:
        0 converted, 1 converted with open decisions, 2 if the input is wrong.
    """
    own, words = _split(arguments)
    options = _parser().parse_args(own)
    if not options.config and not words:
        _parser().error("nothing to convert: give a config.yaml, a command line after --, or both")
    try:
        conversion = _conversion(options, words)
    except LegacyInputError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return cli.WRONG_INPUT
    text, command = _as_yaml(conversion.job if conversion.settings is None else conversion.settings), ""
    if options.gcloud and _has_gap(conversion.job):
        message = "gcloud refuses the unused pool {}; this is the request for the REST API, as JSON"
        conversion.report.add("changed", "worker pools", message)
        text, command = _for_rest(conversion.job, conversion.region)
    elif options.gcloud:
        config, command = _for_gcloud(conversion.job, conversion.region)
        text = _as_yaml(config)
    print(text, end="")
    sys.stdout.flush()
    _print_report(conversion)
    if command:
        print(f"submit it with: {command}", file=sys.stderr)
    return cli.FAILED if conversion.needs_decision else cli.DONE


def _conversion(options: argparse.Namespace, words: list[str]) -> Conversion:
    report = Report()
    command = read_command(words, report) if words else None
    return convert(
        _document(options.config, command, report),
        command,
        report=report,
        replace_retired=options.replace_retired,
        as_settings=options.pipeline_settings,
        catalogue=tables(options),
        today=options.today,
    )


def _parser() -> cli.Parser:
    made = parser("convert", _DESCRIPTION, _EPILOGUE)
    made.usage = "%(prog)s [options] [config.yaml] [-- gcloud ai-platform jobs submit training ... [-- args]]"
    made.add_argument("config", nargs="?", metavar="config.yaml", help="config file of the job; - for standard input")
    made.add_argument("--replace-retired", action="store_true", help="replace K80 and P100 with current GPUs")
    form = made.add_mutually_exclusive_group()
    form.add_argument(
        "--pipeline-settings", action="store_true", help="print settings for this project's compile.py instead"
    )
    form.add_argument(
        "--gcloud",
        action="store_true",
        help="print the job_spec in camelCase, for gcloud ai custom-jobs create",
    )
    add_today(made)
    return made


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split at the first "--", or at gcloud if the command was pasted without it."""
    for index, word in enumerate(arguments):
        if word == "--":
            return arguments[:index], arguments[index + 1 :]
        if word == "gcloud" or word.startswith("gcloud "):
            return arguments[:index], arguments[index:]
    return arguments, []


def _document(path: str | None, command: Command | None, report: Report) -> Any:
    named = command.flags.get("--config") if command is not None else None
    if path is None and named is None:
        return None
    if path is not None:
        if named is not None and named.removeprefix("./") != path.removeprefix("./"):
            report.add("doubtful", "--config", f"{path} was read instead of {named}")
        return _yaml(path)
    try:
        return _yaml(str(named))
    except UserError as error:
        raise LegacyInputError([f"--config: {error}; give the config file before the --"]) from None


def _yaml(path: str) -> Any:
    # gcloud reads a JSON file as YAML, too, which allows a comma after the last item.
    document = next(iter(parse_all(read_bytes(path), display(path), may_be_yaml=True)), None)
    if document is None:
        raise UserError(f"{path} is empty; expected trainingInput: with its fields")
    return document


def _has_gap(job: dict[str, Any]) -> bool:
    return {} in (job.get("trial_job_spec") or job["job_spec"])["worker_pool_specs"]


def _for_rest(job: dict[str, Any], region: str) -> tuple[str, str]:
    """Return the body of the request that creates the job, and the command that sends it."""
    collection = "hyperparameterTuningJobs" if "trial_job_spec" in job else "customJobs"
    place = shlex.quote(region) if region else "REGION"
    url = f"https://{place}-aiplatform.googleapis.com/v1/projects/PROJECT/locations/{place}/{collection}"
    command = (
        'curl -X POST -H "Authorization: Bearer $(gcloud auth print-access-token)" '
        f'-H "Content-Type: application/json" -d @FILE {url}'
    )
    return json.dumps(_camel(job), indent=2, ensure_ascii=False) + "\n", command


def _for_gcloud(job: dict[str, Any], region: str) -> tuple[dict[str, Any], str]:
    """Return the content of the file for --config, and the command that submits it.

    Args:
        job: The fields of a converted job.
        region: Region of the job; empty if the input has none.
    """
    if "trial_job_spec" in job:
        config = {"studySpec": _camel(job["study_spec"]), "trialJobSpec": _camel(job["trial_job_spec"])}
        flags = ["gcloud ai hp-tuning-jobs create", f"--max-trial-count={job['max_trial_count']}"]
        flags.append(f"--parallel-trial-count={job['parallel_trial_count']}")
        if "max_failed_trial_count" in job:
            # There is no flag for it; the file has the fields of the whole job.
            config["maxFailedTrialCount"] = job["max_failed_trial_count"]
    else:
        config, flags = _camel(job["job_spec"]), ["gcloud ai custom-jobs create"]
    flags += [
        f"--region={shlex.quote(region) if region else 'REGION'}",
        f"--display-name={shlex.quote(job['display_name'])}",
        "--config=FILE",
    ]
    if "labels" in job:
        flags.append(shlex.quote("--labels=" + ",".join(f"{key}={value}" for key, value in job["labels"].items())))
    if "encryption_spec" in job:
        flags.append(f"--kms-key={shlex.quote(job['encryption_spec']['kms_key_name'])}")
    return config, " ".join(flags)


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {camel(key): inner if key in _MAPS else _camel(inner) for key, inner in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value


def _as_yaml(value: dict[str, Any]) -> str:
    import yaml  # only convert needs PyYAML to print

    class _Plain(yaml.SafeDumper):
        """A dumper that writes a list shared by several pools once per pool instead of as an alias."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)
    return str(text)


def _print_report(conversion: Conversion) -> None:
    for remark in conversion.report.remarks:
        print(f"{remark.kind:<8}  {remark.field}: {remark.message}", file=sys.stderr)
    paths: dict[tuple[str, str], list[str]] = {}
    for finding in conversion.findings:
        line = f"check     {finding.severity}: {finding.message} [{finding.rule}]"
        paths.setdefault((line, finding.nearest), []).append(finding.path)
    for (line, nearest), found in paths.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        print(f"{line} at {found[0]}{more}{nearest}", file=sys.stderr)
    errors = sum(finding.severity == "error" for finding in conversion.findings)
    decisions = sum(remark.kind == "decide" for remark in conversion.report.remarks)
    verdict = "passes check" if not errors else f"does not pass check ({errors} error{'s' * (errors != 1)})"
    open_ones = f"; {decisions} decision{'s' * (decisions != 1)} left to you" if decisions else ""
    print(f"converted; the job {verdict}{open_ones}", file=sys.stderr)
