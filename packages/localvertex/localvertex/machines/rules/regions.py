"""Rules about the region of a job and what is offered there."""

import re

from localvertex._base.userinput.spelling import closest
from localvertex.machines.catalogue import nearest
from localvertex.machines.catalogue.catalogue import has_ended
from localvertex.machines.rules.job import Job, PoolSpec

_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")


def check_region(job: Job) -> None:
    """Check the region of the job and every accelerator in it; without a region, check only the same-zone rule."""
    if job.region and _is_training_region(job):
        for pool in job.pools:
            _is_offered(pool)
    _same_zone(job)


def _is_training_region(job: Job) -> bool:
    region = job.region
    if region not in job.catalogue.training_regions:
        zone = _ZONE.fullmatch(region)
        near = (zone.group(1),) if zone else closest(region, job.catalogue.training_regions, 3)
        found = "is a zone" if zone else f"is not a region with {job.purpose}"
        job.error("region", "region", f"{region!r} {found}; use a region such as europe-west4", near)
        return False
    if not job.catalogue.training_regions[region]:
        message = f"{job.purpose} in {region} is doubtful: only some of Google's pages list it; try a short job first"
        job.warning("region-doubtful", "region", message)
    return True


def _is_offered(pool: PoolSpec) -> None:
    job, accelerator, part = pool.job, pool.accelerator, "machine_spec.accelerator_type"
    kind = job.catalogue.accelerators.get(accelerator)
    if kind is None or has_ended(kind, job.today):
        return  # the rules about machines have reported it, with replacements
    near = nearest.regions(job.catalogue, accelerator, job.region)
    entry = job.catalogue.regions.get((accelerator, job.region))
    if entry is None or entry.training == "no":
        found = f"{f'not offered for {job.purpose}' if entry else 'not offered'} in {job.region}"
        pool.error("accelerator-region", part, f"{accelerator} is {found}; choose another region or accelerator", near)
    elif entry.doubtful:
        message = (
            f"{accelerator} in {job.region} is doubtful (quota page: {entry.default_quota or 'nothing'}, "
            f"as of {entry.source_date}); check your quota first"
        )
        pool.warning("accelerator-region-doubtful", part, message, near)


def _same_zone(job: Job) -> None:
    kinds = dict.fromkeys(pool.accelerator for pool in job.pools if pool.accelerator)
    if len(kinds) > 1:
        message = (
            f"{' and '.join(kinds)} in one job must be available in the same zone of the region, "
            "which no table shows; use one type, or ask for a zone that has them"
        )
        job.warning("same-zone", f"{job.prefix}worker_pool_specs", message)
