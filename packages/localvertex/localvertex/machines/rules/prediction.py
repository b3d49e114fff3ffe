"""Rules about the machines of deployed models and batch predictions, which differ from custom training."""

from dataclasses import replace
from datetime import date
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.machines.catalogue.catalogue import load_catalogue
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.shape import Reading
from localvertex.machines.rules.job import Job, PoolSpec
from localvertex.machines.rules.machines import check_machines
from localvertex.machines.rules.regions import check_region

ONLINE, BATCH = "DedicatedResources", "BatchDedicatedResources"
"""The two messages of the API."""

_FIRST_COUNT = {ONLINE: "min_replica_count", BATCH: "starting_replica_count"}
_POOL = "worker_pool_specs[0]."
_MIN_OF_A_RACK = 18
"""Replicas of a4x-highgpu-4g, which is sold by the rack (page on configuring compute for predictions)."""


def check_resources(
    resources: Any,
    reading: Reading,
    *,
    kind: str = ONLINE,
    path: str = "",
    region: str = "",
    today: date | None = None,
) -> list[Finding]:
    """Check the dedicated resources of a deployed model or of a batch prediction.

    Args:
        resources: The fields as given.
        reading: The reading; its findings come first.
        kind: The message that they are.
        path: Path of the resources in the file; empty for none.
        region: Region of the endpoint or job; without it regions are not checked.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Errors and warnings; an empty list when nothing is wrong.
    """
    fields = reading.message(resources, kind, path)
    job = Job(
        spec={"worker_pool_specs": [{"machine_spec": fields.get("machine_spec", {})}]},
        purpose="prediction",
        catalogue=load_catalogue().for_prediction,
        region=region,
        today=today or date.today(),
    )
    check_machines(job)
    check_region(job)
    _check_replicas(job.pools[0], fields, _FIRST_COUNT[kind])
    prefix = f"{path}." if path else ""
    return reading.findings + [replace(each, path=each.path.replace(_POOL, prefix)) for each in job.findings]


def _check_replicas(pool: PoolSpec, fields: JsonObject, first: str) -> None:
    least, most = fields.get(first), fields.get("max_replica_count")
    at_least = max(1, least) if isinstance(least, int) else 1
    if first == _FIRST_COUNT[ONLINE] and isinstance(least, int) and least < 1:
        pool.error("replica-count", first, f"{first} is {least}; a deployed model has at least 1 replica")
    # 0 leaves the choice to the service.
    if isinstance(most, int) and most and most < at_least:
        message = f"max_replica_count is {most}, less than {first}; give at least {at_least}"
        pool.warning("replica-count", "max_replica_count", message)
    if pool.machine_type == "a4x-highgpu-4g" and isinstance(least, int) and least < _MIN_OF_A_RACK:
        message = f"{first} is {least}; a4x-highgpu-4g is sold by the rack, with at least {_MIN_OF_A_RACK} replicas"
        pool.error("replica-count", first, message)
