"""Tuning jobs that are in the file or in the parameters: checked before anything runs, as far as they are known."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

from accelerators import load_catalogue
from accelerators.job.shape import Reading
from accelerators.job.values import RuntimeValue
from accelerators.pipeline.graph import Graph
from accelerators.pipeline.payload import Payload, build
from accelerators.rules.rules import check_spec
from compiled.spec import Pipeline
from localvertex.custom_jobs.tuning.job import COUNTS, read_counts
from localvertex.custom_jobs.tuning.study import read_study
from localvertex.executors.google_cloud.tuning_job import TuningJobExecutor
from localvertex.executors.launcher import without_empty
from userinput.errors import UserError
from userinput.parameters import restore_integers

_STUDY, _JOB = "study_spec", "trial_job_spec"


def refusals(pipeline: Pipeline, values: Mapping[str, Any], *, region: str) -> list[str]:
    """Return everything for which the service would refuse a tuning job, each with its path.

    Args:
        pipeline: The pipeline, which has been checked.
        values: The values of its parameters.
        region: The region of the run.
    """
    accepts = TuningJobExecutor().accepts
    if not any(accepts(each) for each in pipeline.executors.values()):
        return []
    given = {name: value for name, value in values.items() if value is not None}
    try:
        steps = [each for each in Graph(pipeline=pipeline, parameters=given).steps() if accepts(each.container)]
    except UserError as error:
        return [str(error)]
    payloads = [payload for step in steps if (payload := build(step))]
    return list(dict.fromkeys(text for payload in payloads for text in _of_payload(payload, region)))


def _of_payload(payload: Payload, region: str) -> Iterator[str]:
    job = {name: restore_integers(value) for name, value in without_empty(payload.job).items()}
    if not _has_runtime_value(job.get(_STUDY)):
        yield from _reason(payload, lambda: read_study(job.get(_STUDY, {})))
    if not any(isinstance(job.get(name), RuntimeValue) for name in COUNTS):
        yield from _reason(payload, lambda: read_counts(job))
    reading = Reading(lenient=True, compiled=True)
    fields = reading.message(job.get(_JOB, {}), "CustomJobSpec", _JOB)
    where, catalogue = payload.region or region, load_catalogue()
    check_spec(fields, reading, region=where, catalogue=catalogue, today=date.today(), prefix=f"{_JOB}.")
    for finding in reading.findings:
        if finding.severity == "error":
            yield f"{_path(payload, finding.path)}: {finding.message}{finding.nearest}"


def _reason(payload: Payload, read: Callable[[], object]) -> Iterator[str]:
    """Yield why a part of the job cannot be read, with its path in the file."""
    try:
        read()
    except UserError as error:
        path, separator, text = str(error).partition(": ")
        yield f"{_path(payload, path)}{separator}{text}"


def _path(payload: Payload, path: str) -> str:
    """Return where the user has written a part of the job."""
    return payload.path_in_file(path).replace("runtimeConfig.parameterValues.", "parameter ", 1)


def _has_runtime_value(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_runtime_value, value.values()))
    if isinstance(value, list):
        return any(map(_has_runtime_value, value))
    return isinstance(value, RuntimeValue)
