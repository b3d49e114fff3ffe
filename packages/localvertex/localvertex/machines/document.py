"""Checks of files: what a file contains decides how it is read and which rules apply."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from localvertex._base.nested import changed, parts
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import read
from localvertex._base.userinput.spelling import quote, snake
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.shape import Reading
from localvertex.machines.pipeline.check import Examination, examine_pipeline
from localvertex.machines.rules.rules import check_job, is_custom_job
from localvertex.machines.studies.study import check_tuning_job

_EXPECTED = "expected a compiled pipeline, worker_pool_specs, a CustomJob or a CustomJobSpec"
_OTHER_FILES = {
    "training_input": "is a config.yaml of AI Platform Training; run `python -m localvertex machines convert` on it",
    "implementation": "is a single component; compile a pipeline that uses it and check the pipeline",
    "api_version": f"is a Kubernetes object, perhaps an Argo workflow from kfp 1; {_EXPECTED}",
}


def check_file(
    path: str | Path,
    *,
    region: str | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Check a file: a compiled pipeline, worker pools, a CustomJob or a CustomJobSpec, in JSON or YAML.

    Args:
        path: The file; "-" is standard input.
        region: Region of the job; for a pipeline, the region of the pipeline itself.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Errors and warnings; an empty list when nothing is wrong.

    Raises:
        UserError: The file cannot be read or is of another kind.
    """
    return examine_file(path, region=region, today=today).findings


def examine_file(path: str | Path, *, region: str | None, today: date | None) -> Examination:
    """Check a file of any known kind.

    Raises:
        UserError: The file cannot be read or is of no known kind.
    """
    return examine(read(path), str(path), region=region, today=today)


def examine(document: Any, name: str, *, region: str | None, today: date | None) -> Examination:
    """Check a document that was read from a file.

    Raises:
        UserError: The document is of no known kind.
    """
    keys = {snake(key) for key in document if isinstance(key, str)} if isinstance(document, Mapping) else set()
    if {"root", "deployment_spec"} & keys or "pipeline_spec" in keys:
        return examine_pipeline(document, region=region, today=today)
    what, fields, at = _kind(document, keys, name)
    reading = Reading()
    check_job(fields, reading, region=region, today=today, path=at)
    if at:
        names = [str(key) for each in parts(document) if isinstance(each, dict) for key in each]
        reading.spelling.update({snake(name): name for name in names})
        check_tuning_job(changed(document, change_key=lambda key: snake(str(key))), reading)
    seen = Examination(what=what)
    for finding in reading.findings:
        path = reading.as_written(finding.path)
        if isinstance(document, list):
            path = path.removeprefix("worker_pool_specs") or "(the list)"
        seen.findings.append(replace(finding, path=path))
    return seen


def _kind(document: Any, keys: set[str], name: str) -> tuple[str, Any, str]:
    """Return the kind of the document, the fields of its job, and their path."""
    if isinstance(document, list) and any(isinstance(pool, Mapping) for pool in document):
        return "worker pools", {"worker_pool_specs": document}, ""
    if "trial_job_spec" in keys:
        key, trial = next((key, value) for key, value in document.items() if snake(str(key)) == "trial_job_spec")
        return "hyperparameter tuning job", trial, str(key)
    if is_custom_job(document):
        return "custom job", document, ""
    if "worker_pool_specs" in keys:
        return "custom job spec", document, ""
    for key, message in _OTHER_FILES.items():
        if key in keys:
            raise UserError(f"{name} {message}")
    if {"machine_spec", "container_spec"} & keys:
        raise UserError(f"{name} is a single worker pool; make it a list: put '- ' before its first line")
    found = quote(document)
    if isinstance(document, Mapping):
        shown = ", ".join(repr(key)[:30] for key in list(document)[:5])
        found = f"a mapping with {shown}" if shown else "a mapping without keys"
    raise UserError(f"{name} contains {found}; {_EXPECTED}")
