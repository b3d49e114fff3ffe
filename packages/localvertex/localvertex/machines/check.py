"""Checks of worker pools and custom jobs as Python values; files are read in `document`."""

from datetime import date

from localvertex._base.json_object import JsonObject
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.shape import Reading
from localvertex.machines.rules import prediction
from localvertex.machines.rules.rules import check_job


def check_worker_pools(
    worker_pool_specs: list[JsonObject],
    *,
    region: str | None = None,
    scheduling_strategy: str = "STANDARD",
    timeout_seconds: int | None = None,
    restart_job_on_worker_restart: bool = False,
    persistent_resource_id: str = "",
    today: date | None = None,
) -> list[Finding]:
    """Check worker pools for a component.

    Args:
        worker_pool_specs: The pools.
        region: Region of the job; without it regions are not checked.
        scheduling_strategy: STANDARD, SPOT or FLEX_START.
        timeout_seconds: Time limit of the job in seconds; None for the service's default of 7 days.
        restart_job_on_worker_restart: Whether the service restarts all replicas when one is restarted.
        persistent_resource_id: The persistent resource that the job runs on; empty for none.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Errors and warnings in the order of the rules; an empty list when nothing is wrong.
    """
    scheduling = {
        "strategy": scheduling_strategy,
        "restart_job_on_worker_restart": restart_job_on_worker_restart,
        "timeout": None if timeout_seconds is None else f"{timeout_seconds}s",
    }
    fields = {
        "worker_pool_specs": worker_pool_specs,
        "scheduling": scheduling,
        "persistent_resource_id": persistent_resource_id,
    }
    return check_job(fields, Reading(), region=region, today=today, component=True)


def check_custom_job(
    custom_job_or_spec: JsonObject,
    *,
    region: str | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Check a CustomJob or a CustomJobSpec.

    Args:
        custom_job_or_spec: The fields; job_spec or display_name makes them a CustomJob.
        region: Region of the job; without it regions are not checked.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Errors and warnings in the order of the rules; an empty list when nothing is wrong.
    """
    return check_job(custom_job_or_spec, Reading(), region=region, today=today)


def custom_job_fields(custom_job: JsonObject) -> JsonObject:
    """Return a CustomJob as the REST API reads it: names in snake_case, plain numbers, unset fields left out.

    The result is complete if `check_custom_job` finds no error; otherwise unreadable fields may be missing.
    """
    return Reading().message(custom_job, "CustomJob", "")


def check_deployment(
    dedicated_resources: JsonObject,
    *,
    region: str = "",
    today: date | None = None,
) -> list[Finding]:
    """Check the machines of a model that is deployed to an endpoint.

    Args:
        dedicated_resources: The field of a DeployedModel in snake_case.
        region: Region of the endpoint; without it regions are not checked.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Errors and warnings; an empty list when nothing is wrong.
    """
    return prediction.check_resources(dedicated_resources, Reading(), region=region, today=today)
