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
from accelerators.legacy.job import vertex_job
from accelerators.legacy.machines import MachineConverter
from accelerators.legacy.merge import merge
from accelerators.legacy.parameters import pipeline_parameters, worker_pools
from accelerators.legacy.report import LegacyInputError, Report


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A converted job.

    Attributes:
        job: The fields of a CustomJob or HyperparameterTuningJob.
        parameters: The machines as parameters for this project's pipeline, if these were requested.
        region: Region of the job; empty if the input has none.
        report: What was changed or dropped, and what the user has to decide.
        findings: The findings of `check` for the job.
    """

    job: dict[str, Any]
    parameters: dict[str, Any] | None = None
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
    as_parameters: bool = False,
    catalogue: Catalogue | None = None,
    today: date | None = None,
) -> Conversion:
    """Convert a job of AI Platform Training.

    Args:
        document: The content of its config.yaml; None without one.
        command: Its command line; None without one.
        report: A report with earlier remarks, e.g. from `read_command`; None for a new one.
        replace_retired: Whether to replace retired GPUs instead of proposing replacements.
        as_parameters: Whether to return parameters for this project's pipeline, too.
        catalogue: The tables; None for `load_catalogue()`.
        today: The day for end-of-support dates; None for the real one.

    Raises:
        LegacyInputError: If the input has mistakes; it names them all.
    """
    notes = report or Report()
    job = read_config(document, notes) if document is not None else {}
    if command is not None:
        job = merge(job, command, notes)
    elif document is None:
        raise LegacyInputError(["nothing to convert: give a config.yaml, a command line after ' -- ', or both"])
    old = job.get("trainingInput", {})
    region = str(old.get("region") or "")
    if region and "$" not in region:
        message = f"not a field of the job; submit the job or the pipeline to {region} (with gcloud: --region={region})"
        notes.add("changed", "region", message)
    tables, day = catalogue or load_catalogue(), today or date.today()
    known = region if region in tables.training_regions else ""
    converter = MachineConverter(
        catalogue=tables, report=notes, replace_retired=replace_retired, region=known, today=day
    )
    made = vertex_job(job, converter, notes)
    # The report already has a region that is a shell variable.
    findings = _checked(made, "" if "$" in region else region, tables, day)
    parameters = None
    if as_parameters:
        parameters = pipeline_parameters(made, notes, old)
        findings = check_worker_pools(
            worker_pools(parameters),
            region=None if "$" in region else region or None,
            scheduling_strategy=parameters["scheduling_strategy"],
            timeout_seconds=parameters.get("timeout_seconds"),
            restart_job_on_worker_restart=parameters["replica_count"] > 1,  # as the pipeline sets it
            catalogue=tables,
            today=day,
        )
        findings = [finding for finding in findings if finding.rule != "placeholder-image"]
    return Conversion(job=made, parameters=parameters, region=region, report=notes, findings=findings)


def _checked(job: dict[str, Any], region: str, catalogue: Catalogue, today: date) -> list[Finding]:
    if "trial_job_spec" in job:
        return examine(job, "the job", region=region, catalogue=catalogue, today=today).findings
    return check_custom_job(job, region=region, catalogue=catalogue, today=today)
