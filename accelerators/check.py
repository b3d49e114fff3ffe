"""Checks worker pools, custom jobs, compiled pipelines and files of any of them."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from accelerators.catalogue.catalogue import Catalogue, load_catalogue
from accelerators.job.finding import Finding
from accelerators.job.shape import Reading
from accelerators.rules.containers import check_containers, check_disks
from accelerators.rules.job import Job
from accelerators.rules.machines import check_machines
from accelerators.rules.pools import check_pools
from accelerators.rules.regions import check_region
from accelerators.rules.scheduling import check_scheduling
from userinput.spelling import snake

_RULES = (check_pools, check_machines, check_disks, check_containers, check_scheduling, check_region)


def check_worker_pools(
    worker_pool_specs: list[dict[str, Any]],
    *,
    region: str | None = None,
    scheduling_strategy: str = "STANDARD",
    timeout_seconds: int | None = None,
    restart_job_on_worker_restart: bool = False,
    catalogue: Catalogue | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Check the pools that a component is about to be given, as strictly as its launcher reads them.

    Args:
        worker_pool_specs: The pools in snake_case with whole numbers; anything else is a finding.
        region: Where the job is to run; without it nothing is said about regions.
        scheduling_strategy: STANDARD, SPOT or FLEX_START.
        timeout_seconds: Time limit of the job in seconds; None for the service's default of 7 days.
        restart_job_on_worker_restart: Whether the service restarts all replicas when one is restarted.
        catalogue: The tables to check against; None for `load_catalogue()`.
        today: The day for end-of-support dates; None for the real one.

    Returns:
        What is wrong, errors and warnings in the order of the rules; an empty list when nothing is.
    """
    scheduling: dict[str, Any] = {
        "strategy": scheduling_strategy,
        "restart_job_on_worker_restart": restart_job_on_worker_restart,
    }
    if timeout_seconds is not None:
        scheduling["timeout"] = f"{timeout_seconds}s"
    reading = Reading(lenient=False)
    spec = reading.message({"worker_pool_specs": worker_pool_specs, "scheduling": scheduling}, "CustomJobSpec", "")
    return check_spec(spec, reading, region=region, catalogue=catalogue, today=today, component=True)


def check_custom_job(
    custom_job_or_spec: dict[str, Any],
    *,
    region: str | None = None,
    catalogue: Catalogue | None = None,
    today: date | None = None,
    lenient: bool = True,
) -> list[Finding]:
    """Check a CustomJob or a CustomJobSpec.

    Args:
        custom_job_or_spec: Its fields; a CustomJob is known by job_spec.
        region: Where the job is to run; without it nothing is said about regions.
        catalogue: The tables to check against; None for `load_catalogue()`.
        today: The day for end-of-support dates; None for the real one.
        lenient: True accepts camelCase, quoted and float numbers, as the REST API and gcloud do; False is as strict
            as the launcher of the Google Cloud components.

    Returns:
        What is wrong, errors and warnings in the order of the rules; an empty list when nothing is.
    """
    reading = Reading(lenient=lenient)
    return check_read(custom_job_or_spec, reading, region=region, catalogue=catalogue, today=today)


def custom_job_fields(custom_job: dict[str, Any]) -> dict[str, Any]:
    """Return a CustomJob as the REST API reads it: names in snake_case, plain numbers, unset fields left out.

    What `check_custom_job` finds no error in is complete here; anything else may lack what could not be read.
    """
    return Reading(lenient=True).message(custom_job, "CustomJob", "")


def check_read(
    job: Any,
    reading: Reading,
    *,
    region: str | None,
    catalogue: Catalogue | None,
    today: date | None,
    component: bool = False,
) -> list[Finding]:
    """Check a CustomJob or CustomJobSpec with a reading of the caller's."""
    whole = is_custom_job(job)
    fields = reading.message(job, "CustomJob" if whole else "CustomJobSpec", "")
    return check_spec(
        fields.get("job_spec", {}) if whole else fields,
        reading,
        region=region,
        catalogue=catalogue,
        today=today,
        component=component,
        prefix="job_spec." if whole else "",
        names=f"{fields.get('display_name', '')} {fields.get('labels', '')}" if whole else "",
    )


def check_spec(
    spec: dict[str, Any],
    reading: Reading,
    *,
    region: str | None,
    catalogue: Catalogue | None,
    today: date | None,
    component: bool = False,
    prefix: str = "",
    names: str = "",
) -> list[Finding]:
    """Run every rule over the fields of a CustomJobSpec that a reading has put into shape."""
    job = Job(
        spec=spec,
        prefix=prefix,
        names=names,
        component=component,
        catalogue=catalogue or load_catalogue(),
        region=region or "",
        today=today or date.today(),
        findings=reading.findings,
    )
    for rule in _RULES:
        rule(job)
    return job.findings


def is_custom_job(value: object) -> bool:
    """Return whether this looks like a CustomJob and not like its spec."""
    keys = {snake(key) for key in value if isinstance(key, str)} if isinstance(value, Mapping) else set()
    return "job_spec" in keys or ("worker_pool_specs" not in keys and "display_name" in keys)


def check_file(
    path: str | Path,
    *,
    region: str | None = None,
    catalogue: Catalogue | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Check a file: a compiled pipeline, worker pools, a CustomJob or a CustomJobSpec, in JSON or YAML.

    Args:
        path: The file; "-" is standard input.
        region: Where it is to run; for a pipeline the region of the pipeline itself.
        catalogue: The tables to check against; None for `load_catalogue()`.
        today: The day for end-of-support dates; None for the real one.

    Raises:
        UnreadableFile: If it cannot be read or is nothing of the kind; the message is one line.
    """
    from accelerators.document import examine_file

    return examine_file(path, region=region, catalogue=catalogue, today=today).findings
