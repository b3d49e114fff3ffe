"""The conversion of a legacy job, from config.yaml, command line or both, and the check of the result."""

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue, load_catalogue
from accelerators.check import check_custom_job, check_worker_pools
from accelerators.document import examine
from accelerators.job.finding import Finding
from accelerators.legacy.command_line import Command
from accelerators.legacy.config_file import read_config
from accelerators.legacy.job import is_filled_in, vertex_job
from accelerators.legacy.machines import MachineConverter
from accelerators.legacy.merge import merge
from accelerators.legacy.report import LegacyInputError, Report
from accelerators.legacy.settings import pipeline_settings, worker_pools


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A converted job.

    Attributes:
        job: The fields of a CustomJob or HyperparameterTuningJob.
        settings: The machines as settings for this project's compile.py, if these were requested.
        region: Region of the job; empty if the input has none.
        report: Changed and dropped fields, and decisions left to the user.
        findings: The findings of `check` for the job.
    """

    job: dict[str, Any]
    settings: dict[str, Any] | None = None
    region: str = ""
    report: Report = field(default_factory=Report)
    findings: list[Finding] = field(default_factory=list)

    @property
    def needs_decision(self) -> bool:
        """Whether the user has to decide something before the job can run."""
        return self.report.needs_decision or any(finding.severity == "error" for finding in self.findings)


def convert(
    document: Any = None,
    command: Command | None = None,
    *,
    report: Report | None = None,
    replace_retired: bool = False,
    as_settings: bool = False,
    catalogue: Catalogue | None = None,
    today: date | None = None,
) -> Conversion:
    """Convert a job of AI Platform Training.

    Args:
        document: The content of its config.yaml; None without one.
        command: Its command line; None without one.
        report: A report with earlier remarks, e.g. from `read_command`; None for a new one.
        replace_retired: Whether to replace retired GPUs instead of proposing replacements.
        as_settings: Whether to return settings for this project's compile.py, too.
        catalogue: The tables; None for `load_catalogue()`.
        today: The day for end-of-support dates; None for the real one.

    Raises:
        LegacyInputError: The input has mistakes; it names them all.
    """
    notes = report or Report()
    job = _merge(document, command, notes)
    training = job.get("trainingInput", {})
    region = _region(training, notes)
    tables, day = catalogue or load_catalogue(), today or date.today()
    converter = MachineConverter(
        catalogue=tables,
        report=notes,
        replace_retired=replace_retired,
        region=region if region in tables.training_regions else "",
        today=day,
    )
    made = vertex_job(job, converter, notes)
    # The report already has a region that is a variable.
    checked_region = region if is_filled_in(region) else ""
    if not as_settings:
        findings = _check_job(made, checked_region, tables, day)
        return Conversion(job=made, region=region, report=notes, findings=findings)
    settings = pipeline_settings(made, notes, training)
    findings = _check_settings(settings, checked_region, tables, day)
    return Conversion(job=made, settings=settings, region=region, report=notes, findings=findings)


def _merge(document: Any, command: Command | None, report: Report) -> dict[str, Any]:
    """Return the Job of the file and the command line."""
    if document is None and command is None:
        raise LegacyInputError(["nothing to convert: give a config.yaml, a command line after ' -- ', or both"])
    job = read_config(document, report) if document is not None else {}
    return job if command is None else merge(job, command, report)


def _region(training: dict[str, Any], report: Report) -> str:
    region = str(training.get("region") or "")
    if region and is_filled_in(region):
        message = f"not a field of the job; submit the job or the pipeline to {region} (with gcloud: --region={region})"
        report.add("changed", "region", message)
    return region


def _check_job(job: dict[str, Any], region: str, catalogue: Catalogue, today: date) -> list[Finding]:
    if "trial_job_spec" in job:
        return examine(job, "the job", region=region, catalogue=catalogue, today=today).findings
    return check_custom_job(job, region=region, catalogue=catalogue, today=today)


def _check_settings(settings: dict[str, Any], region: str, catalogue: Catalogue, today: date) -> list[Finding]:
    findings = check_worker_pools(
        worker_pools(settings),
        region=region,
        scheduling_strategy=settings["scheduling_strategy"],
        timeout_seconds=settings.get("timeout_seconds"),
        restart_job_on_worker_restart=settings["replica_count"] > 1,  # as the pipeline sets it
        catalogue=catalogue,
        today=today,
    )
    # The pipeline has its own container image.
    return [finding for finding in findings if finding.rule != "placeholder-image"]
