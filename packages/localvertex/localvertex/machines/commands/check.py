"""`python -m localvertex machines check`: the findings for a job before it is queued."""

import argparse
import sys
from dataclasses import asdict

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean
from localvertex.machines.catalogue.catalogue import load_catalogue
from localvertex.machines.commands.options import known_region
from localvertex.machines.document import examine_file
from localvertex.machines.job.finding import Finding
from localvertex.machines.pipeline.check import Examination
from localvertex.machines.rules.rules import RULES

_DESCRIPTION = """\
Check compiled pipelines, worker_pool_specs, CustomJobs and CustomJobSpecs (JSON
or YAML) against what Vertex AI training accepts. Print each finding with its
rule, its path in the file and the nearest valid choices. No data leaves this
machine."""
_EPILOGUE = """\
exit codes: 0 no errors (warnings are printed), 1 errors, 2 invalid input

examples:
  python -m localvertex machines check build/image_training.json --region europe-west4
  python -m localvertex machines check worker_pools.yaml --strict --ignore capacity
  gcloud ai custom-jobs describe JOB --region R --format json |
      python -m localvertex machines check -"""


def run(arguments: list[str]) -> int:
    """Check the files in the arguments and print the findings.

    Returns:
        0 without errors, 1 with errors, 2 if a file is unreadable.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list_rules:
        print("\n".join(f"{rule:<28} {meaning}" for rule, meaning in RULES.items()))
        return cli.DONE
    if not options.files:
        parser.error("the following arguments are required: FILE")
    answer = cli.answer("check", files=[])
    if options.format == "json":
        return cli.run_json(lambda: _check(options, answer), answer)
    return _check(options, answer)


def _check(options: argparse.Namespace, answer: JsonObject) -> int:
    ignored = _ignored_note(options.ignore)
    known_region(load_catalogue(), options.region)
    results = [(path, _examine(path, options.region, ignored)) for path in options.files]
    answer["files"] = [_as_json(path, result) for path, result in results]
    for path, result in results:
        _print(path, result)
    if any(isinstance(result, UserError) for _, result in results):
        return cli.WRONG_INPUT
    found = [finding for _, result in results if isinstance(result, Examination) for finding in result.findings]
    return int(any(options.strict or finding.severity == "error" for finding in found))


def _parser() -> cli.Parser:
    made = cli.Parser("python -m localvertex machines check", description=_DESCRIPTION, epilog=_EPILOGUE)
    made.add_argument("files", nargs="*", metavar="FILE", help="file to check; - for standard input")
    made.add_argument("--region", metavar="R", help="region of the job; without it, regions are not checked")
    made.add_argument("--strict", action="store_true", help="count warnings as errors")
    made.add_argument("--ignore", action="append", default=[], metavar="RULE", help="skip this rule (repeatable)")
    made.add_argument("--list-rules", action="store_true", help="print every rule and what it finds, then exit")
    made.add_argument("--json", action="store_const", const="json", dest="format", help="as --format json")
    made.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    return made


def _ignored_note(given: list[str]) -> set[str]:
    rules = {rule for text in given for rule in text.split(",") if rule}
    for rule in sorted(rules - set(RULES)):
        raise UserError(f"--ignore {rule}: unknown rule{did_you_mean(rule, RULES)} (see --list-rules)")
    return rules


def _examine(path: str, region: str | None, ignored: set[str]) -> Examination | UserError:
    try:
        seen = examine_file(path, region=region, today=None)
    except UserError as error:
        return error
    seen.findings = [finding for finding in seen.findings if finding.rule not in ignored]
    return seen


def _as_json(path: str, result: Examination | UserError) -> dict[str, object]:
    if isinstance(result, UserError):
        return {"file": path, "unreadable": str(result)}
    # Programs read the path as "where", its name in this format.
    findings = [
        {"where" if name == "path" else name: value for name, value in asdict(finding).items()}
        for finding in result.findings
    ]
    return {"file": path, "what": result.what, "findings": findings, "notes": result.notes}


def _print(path: str, result: Examination | UserError) -> None:
    if isinstance(result, UserError):
        sys.stdout.flush()
        print(f"error: {result}", file=sys.stderr)
        return
    for finding in result.findings:
        print(_as_text(finding))
    for note in result.notes:
        print(f"note: {note}")
    name = path if path.isprintable() else repr(path)
    counts = [sum(finding.severity == kind for finding in result.findings) for kind in ("error", "warning")]
    unknown = sum(finding.rule == "not-checked" for finding in result.findings)
    more = f" ({unknown} not checked)" if unknown else ""
    print(f"{name}: {result.what}, {_plural(counts[0], 'error')}, {_plural(counts[1], 'warning')}{more}")


def _as_text(finding: Finding) -> str:
    lines = [f"{finding.severity}: {finding.message} [{finding.rule}]", f"    at {finding.path}"]
    if finding.alternatives:
        lines.append(f"    nearest: {'; '.join(finding.alternatives)}")
    return "\n".join(lines)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
