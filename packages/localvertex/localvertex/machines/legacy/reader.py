"""The reader of jobs of AI Platform Training: a config.yaml and the flags of gcloud become one Job."""

from collections.abc import Mapping
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import quote, snake
from localvertex.machines.job.shape import Reading
from localvertex.machines.legacy.command_line import Command
from localvertex.machines.legacy.fields import MESSAGES, NOT_CONVERTED
from localvertex.machines.legacy.report import LegacyInputError, Report

_VERTEX = {"job_spec", "worker_pool_specs", "trial_job_spec"}


def read_job(document: Any, command: Command | None, report: Report) -> JsonObject:
    """Return the Job with its fields in camelCase; the flags of the command line replace those of the file.

    Args:
        document: The content of the config.yaml; None without one.
        command: The command line; None without one.
        report: Gets a remark for every key that is not spelt exactly right, replaced or not converted.

    Raises:
        LegacyInputError: There are unknown keys or values of the wrong type; it names them all.
    """
    if document is None and command is None:
        raise LegacyInputError(["nothing to convert: give a config.yaml, a command line after ' -- ', or both"])
    job = {} if document is None else _read(document, report)
    if document is not None and not job.get("trainingInput"):
        raise LegacyInputError(["the config has no fields under trainingInput; expected a training job"])
    if command is not None:
        job = _merged(job, _read(command.document, report), "", report)
    _note_not_converted(job["trainingInput"], "", report)
    return job


def _read(document: Any, report: Report) -> JsonObject:
    if not isinstance(document, Mapping):
        raise LegacyInputError([f"the config contains {quote(document)}; expected trainingInput: with its fields"])
    if _VERTEX & {snake(key) for key in document if isinstance(key, str)}:
        raise LegacyInputError(["this is already a Vertex AI job; run `python -m localvertex machines check` on it"])
    if misplaced := [str(key) for key in document if key in MESSAGES["TrainingInput"]]:
        raise LegacyInputError([f"{key} belongs under trainingInput: ({key})" for key in misplaced])
    reading = Reading(messages=MESSAGES)
    job = reading.message(document, "Job", "")
    if reading.findings:
        raise LegacyInputError([f"{found.path}: {found.message}" for found in reading.findings])
    for name, key in reading.spelling.items():
        message = f"{key} is read as {name}; the service ignored it, so check which machines the job really used"
        report.add("doubtful", name, message)
    return job


def _merged(old: JsonObject, new: JsonObject, path: str, report: Report) -> JsonObject:
    made = dict(old)
    for name, value in new.items():
        here, before = f"{path}.{name}" if path else name, old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            made[name] = _merged(before, value, here, report)
            continue
        made[name] = value
        if before not in (None, value):
            found = f"{quote(before)} from the file is replaced with {quote(value)} from the command line"
            report.add("changed", here.removeprefix("trainingInput."), found)
    return made


def _note_not_converted(fields: JsonObject, path: str, report: Report) -> None:
    for name, value in fields.items():
        if name in NOT_CONVERTED:
            kind, reason = NOT_CONVERTED[name]
            report.add(kind, f"{path}{name}", reason)
        elif isinstance(value, dict):
            _note_not_converted(value, f"{path}{name}.", report)
