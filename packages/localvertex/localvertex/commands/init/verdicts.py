"""Judge a compiled pipeline before anything of it runs: refused by Vertex AI, runs here, or needs what stand-ins."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from accelerators.document import examine
from localvertex.errors import Refusal, Refused
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.runner import engine
from localvertex.runner.checks import addresses
from localvertex.runner.checks.given_outputs import named_tasks
from localvertex.runner.checks.proposal import proposed
from localvertex.runner.options import Options
from localvertex.values.buckets import Buckets
from localvertex_base.compiled.load import documents_of, pipeline_of
from localvertex_base.compiled.spec import Container, Pipeline
from localvertex_base.userinput import reading
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.parameters import ParameterType, complete

_SAMPLES: dict[ParameterType, Any] = {
    ParameterType.NUMBER_INTEGER: 1,
    ParameterType.NUMBER_DOUBLE: 0.5,
    ParameterType.BOOLEAN: True,
    ParameterType.LIST: [],
    ParameterType.STRUCT: {},
}
"""Values for parameters without a default; a text for all other types."""


class Verdict(StrEnum):
    """What would happen to a pipeline."""

    RUNS = "runs here"
    NEEDS = "needs stand-ins"
    REFUSED = "refused by Vertex AI"
    CANNOT = "cannot run here"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A compiled pipeline and its verdict."""

    path: Path
    """Relative to the searched folder."""
    name: str = ""
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    proposal: str = ""
    """Lines for localvertex.toml with which it would run, or would be refused for less."""
    missing: Mapping[str, Any]
    """A sample value for each parameter that a run must be given."""
    custom_job: str = ""
    """The path of its first step with a custom job; empty without one."""


def judge(root: Path, path: Path) -> Judged | None:
    """Judge a file; None if it is not a compiled pipeline.

    Args:
        root: The searched folder.
        path: The file, relative to it.
    """
    name = reading.display(path)
    try:
        documents = documents_of(reading.read_bytes(root / path), str(path))
        if not _is_pipeline(documents[0]):
            return None
        pipeline = pipeline_of(documents, name)
        found = examine(documents[0], name, region=None, today=None).findings
    except UserError as error:
        return Judged(path=path, verdict=Verdict.CANNOT, reasons=(_short(error, root, path),), missing={})
    errors = tuple(f"{each.message} [{each.rule}]" for each in found if each.severity == "error")
    missing = _missing(pipeline)
    verdict, reasons, proposal = _here(root / path, pipeline, missing)
    return Judged(
        path=path,
        name=pipeline.name,
        verdict=Verdict.REFUSED if errors else verdict,
        reasons=tuple(_short(each, root, path) for each in errors or reasons),
        proposal=proposal,
        missing=missing,
        custom_job=_custom_job(pipeline),
    )


def _is_pipeline(document: Mapping[str, Any]) -> bool:
    keys = {key.replace("_", "").casefold() for key in document if isinstance(key, str)}
    return "pipelinespec" in keys or {"root", "deploymentspec"} <= keys


def _missing(pipeline: Pipeline) -> dict[str, Any]:
    return {
        name: _SAMPLES.get(each.type, "text")
        for name, each in pipeline.root.input_parameters.items()
        if each.default is None and not each.is_optional and name not in pipeline.job.parameters
    }


def _here(path: Path, pipeline: Pipeline, missing: Mapping[str, Any]) -> tuple[Verdict, tuple[str, ...], str]:
    """Return whether it would run here, why not, and the lines of a configuration with which it would."""
    try:
        values = complete(pipeline.root.input_parameters, {**pipeline.job.parameters, **missing})
        opened = engine.open_file(path, Options())
        try:
            engine.check(opened, parameters=missing, options=Options())
        except UserError:
            # The sample of a parameter may be the reason, such as for a machine type.
            if not missing:
                raise
    except Refused as error:
        # A run would refuse the addresses only after the steps have their stand-ins.
        found = addresses.refusals(pipeline, values, buckets=Buckets(), has_credentials=False)
        reasons = list(dict.fromkeys([*error.reasons, *found]))
        proposal = proposed(pipeline, reasons)
        others = [each for each in reasons if not _has_way_on(each)]
        is_enough = proposal and not others
        return Verdict.NEEDS if is_enough else Verdict.CANNOT, tuple(others or reasons), proposal
    except UserError as error:
        return Verdict.CANNOT, (str(error),), ""
    return Verdict.RUNS, (), ""


def _has_way_on(reason: str) -> bool:
    return isinstance(reason, Refusal) and bool(reason.stand_in)


def _custom_job(pipeline: Pipeline) -> str:
    accepts = CustomJobExecutor().accepts
    for task in named_tasks(pipeline):
        executor = pipeline.executors.get(task.component.executor)
        if isinstance(executor, Container) and accepts(executor):
            return task.path
    return ""


def _short(error: object, root: Path, path: Path) -> str:
    """Return a message without the file, which is named above it."""
    text = str(error)
    for name in (reading.display(root / path), reading.display(path)):
        text = text.removeprefix(f"{name}: ").removeprefix(f"{name} ")
    return text
