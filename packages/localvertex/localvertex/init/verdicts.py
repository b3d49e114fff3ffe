"""Judge a compiled pipeline before it runs: Vertex AI refuses it, it runs here, or it needs named stand-ins."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from localvertex._base.compiled.load import documents_of, pipeline_of
from localvertex._base.compiled.parameters import complete
from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError
from localvertex.errors import Refusal, Refused
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.machines.document import examine
from localvertex.runner import engine
from localvertex.runner.checks import addresses, bigquery
from localvertex.runner.checks.given_outputs import example, named_tasks
from localvertex.runner.checks.proposal import Tables, heading, proposed
from localvertex.runner.options import Options
from localvertex.values.buckets import Buckets
from localvertex.values.configuration import Configuration

RUNS, NEEDS, REFUSED, CANNOT = "runs here", "needs stand-ins", "refused by Vertex AI", "cannot run here"
SOURCE = "to be compiled"
ORDER = (RUNS, NEEDS, REFUSED, CANNOT)
"""The verdicts of compiled files, the best first."""
_KEYS = {"pipelineSpec", "pipeline_spec", "deploymentSpec", "deployment_spec"}
_MAX_REASONS = 3


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pipeline and its verdict."""

    path: str
    """Relative to the searched folder; of a function, with its line."""
    name: str
    verdict: str
    details: list[str]
    command: str = ""
    """Compiles it; empty for a compiled file."""
    proposal: Tables = field(default_factory=dict)
    """Tables of localvertex.toml with which it would run, or would be refused for less."""
    missing: JsonObject = field(default_factory=dict)
    """A sample value for each parameter that a run must be given."""
    custom_job: str = ""
    """The path of its first step with a custom job; empty without one."""

    @property
    def is_compiled(self) -> bool:
        """Whether it is a compiled file."""
        return self.verdict != SOURCE


def judge(root: Path, path: Path) -> list[Row]:
    """Judge a file below the searched folder; none if it is not a compiled pipeline."""
    name = reading.display(path)
    try:
        documents = documents_of(reading.read_bytes(root / path), str(path))
        if not _KEYS & {*documents[0]}:
            return []
        pipeline = pipeline_of(documents, name)
        found = examine(documents[0], name, region=None, today=None).findings
        missing = {
            name: example(each)
            for name, each in pipeline.root.input_parameters.items()
            if each.is_required and name not in pipeline.job.parameters
        }
        verdict, details, proposal = _here(root / path, pipeline, missing)
    except UserError as error:
        return [Row(path=str(path), name="", verdict=CANNOT, details=[str(error)])]
    if errors := [f"{each.message} [{each.rule}]" for each in found if each.severity == "error"]:
        verdict, details = REFUSED, errors[:_MAX_REASONS]
    if missing:
        details.append(f"parameters without a default: {', '.join(missing)}")
    jobs = [
        task.path
        for task in named_tasks(pipeline)
        if (executor := pipeline.executor_of(task.spec)) and CustomJobExecutor().accepts(executor)
    ]
    return [
        Row(
            path=str(path),
            name=pipeline.name,
            verdict=verdict,
            details=details,
            proposal=proposal,
            missing=missing,
            custom_job=next(iter(jobs), ""),
        )
    ]


def _here(path: Path, pipeline: Pipeline, missing: JsonObject) -> tuple[str, list[str], Tables]:
    """Return whether it would run here, why not or with what, and the tables of a configuration with which it would.

    Raises:
        UserError: It cannot run.
    """
    values = complete(pipeline.root.input_parameters, pipeline.job.parameters | missing)
    try:
        opened = engine.open_file(path, Options())
        # Otherwise the sample of a parameter may be the reason, such as for a machine type.
        if not missing:
            engine.check(opened, options=Options())
        reasons = []
    except Refused as error:
        reasons = list(error.reasons)
    # A run would also refuse the addresses of samples.
    reasons += addresses.refusals(pipeline, values, buckets=Buckets(), has_credentials=False)
    callers = bigquery.calls(pipeline, values, has_credentials=False)
    reasons = [*dict.fromkeys([*reasons, *callers])]
    proposal = proposed(pipeline, reasons, Configuration())
    if others := [each for each in reasons if not isinstance(each, Refusal)]:
        return CANNOT, others[:_MAX_REASONS], proposal
    return (NEEDS if reasons else RUNS), [*filter(None, [", ".join(map(heading, proposal))]), *callers], proposal


def identifier(text: str, gap: str) -> str:
    """Return the name of a pipeline in lower-case letters and digits, as part of the name of a file or a function."""
    return re.sub(r"[^a-z0-9]+", gap, text.casefold())[:60].strip(gap) or "pipeline"
