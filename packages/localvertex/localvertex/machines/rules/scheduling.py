"""Rules about scheduling: FLEX_START, SPOT, restarts, reservations and time limits."""

import re

from localvertex._base.userinput.spelling import closest, join_or
from localvertex.machines.job.schema import ENUMS, OLD_STRATEGIES
from localvertex.machines.job.shape import seconds
from localvertex.machines.job.values import RuntimeValue, is_known, mapping
from localvertex.machines.rules.job import Job, PoolSpec

_MAX_FLEX_START_SECONDS = 7 * 24 * 3600
"""A FLEX_START job runs for at most 7 days (page on Dynamic Workload Scheduler, 2026-07-23)."""

_ZONE = re.compile(r"/zones/([^/]+)/")
"""Zone in the name of a reservation, projects/P/zones/Z/reservations/R."""

_AFFINITY = "machine_spec.reservation_affinity"
_CURRENT = ("STANDARD", "SPOT", "FLEX_START")


def check_scheduling(job: Job) -> None:
    """Check the scheduling of the job against its machines."""
    path = f"{job.prefix}scheduling"
    name = job.scheduling.get("strategy")
    if is_known(name) and name not in ENUMS["Strategy"]:
        message = f"{name!r} is not a scheduling strategy; expected {join_or(_CURRENT)}"
        near = closest(str(name), _CURRENT)
        job.error("scheduling-strategy", f"{path}.strategy", message, near or _CURRENT)
        return
    if name in OLD_STRATEGIES:
        message = f"{name} is deprecated; use {OLD_STRATEGIES[name]}"
        job.warning("scheduling-deprecated", f"{path}.strategy", message, (OLD_STRATEGIES[name],))
    if job.scheduling_strategy == "FLEX_START":
        _flex_start(job, path)
    # CustomTrainingJobOp always sends its default of one day, which the launcher drops: not a mistake of the user.
    elif not (isinstance(name, RuntimeValue) or job.component) and "max_wait_duration" in job.scheduling:
        message = f"max_wait_duration has no effect with {job.scheduling_strategy}, only with FLEX_START; remove it"
        job.warning("max-wait-unused", f"{path}.max_wait_duration", message)
    _restarts(job, path)
    for pool in job.pools:
        _reservation(pool)


def _flex_start(job: Job, path: str) -> None:
    for pool in job.pools:
        _flex_start_accelerator(pool)
    machines = [pool.machine for pool in job.pools]
    if any(machine != machines[0] for machine in machines):
        message = "FLEX_START needs the same machine_spec in all pools, but these differ; make them equal"
        job.error("flex-start-pools", f"{job.prefix}worker_pool_specs", message)
    timeout = job.scheduling.get("timeout")
    if isinstance(timeout, str) and seconds(timeout) > _MAX_FLEX_START_SECONDS:
        message = (
            f"timeout is {timeout}, but FLEX_START runs for at most 7 days; "
            "use 604800s or less and resume from a checkpoint"
        )
        job.error("flex-start-timeout", f"{path}.timeout", message, ("604800s",))


def _flex_start_accelerator(pool: PoolSpec) -> None:
    if isinstance(pool.machine.get("accelerator_type"), RuntimeValue):
        return
    accelerators = pool.job.catalogue.accelerators
    entry = accelerators.get(pool.accelerator)
    part = "machine_spec.accelerator_type"
    if entry is not None and entry.flex_start == "uncertain":
        message = (
            f"FLEX_START with {entry.name} is doubtful: Google's page names only the family; try a short job first"
        )
        pool.warning("flex-start-doubtful", part, message)
    elif (entry is None and pool.accelerator == "") or (entry is not None and entry.flex_start != "yes"):
        able = [name for name, kind in accelerators.items() if kind.flex_start == "yes"]
        found = pool.accelerator or "a machine without a GPU"
        message = f"FLEX_START does not cover {found}; use {join_or(able)}"
        pool.error("flex-start-accelerator", part, message, pool.near())


def _replicas(job: Job) -> int | None:
    """Return the number of replicas of the whole job, or None when it is not known."""
    counts = [pool.replica_count for pool in job.pools]
    return sum(counts) if counts and all(isinstance(count, int) for count in counts) else None


def _restarts(job: Job, path: str) -> None:
    restart = job.scheduling.get("restart_job_on_worker_restart")
    no_retries = job.scheduling.get("disable_retries") is True
    replicas = _replicas(job)
    restart_path = f"{path}.restart_job_on_worker_restart"
    if no_retries and (restart is True or job.scheduling_strategy == "SPOT"):
        message = "disable_retries is true, so a lost machine ends the job; remove it"
        job.warning("retries-disabled", f"{path}.disable_retries", message)
    if job.scheduling_strategy == "SPOT" and restart in (False, None) and (replicas or 0) > 1:
        message = (
            f"SPOT with {replicas} replicas, but restart_job_on_worker_restart is not set: "
            "when one replica is preempted, the others wait for it; set it to true"
        )
        job.warning("spot-without-restart", restart_path, message)
    wants_spot = any(word in job.names.casefold() for word in ("spot", "preempt"))
    is_standard = is_known(job.scheduling.get("strategy", "")) and job.scheduling_strategy == "STANDARD"
    if restart is True and is_standard and (replicas == 1 or wants_spot):
        message = (
            "restart_job_on_worker_restart restarts all replicas when one restarts, but requests no Spot machines; "
            "set the strategy SPOT for that"
        )
        job.warning("restart-is-not-spot", restart_path, message, ("strategy SPOT",))


def _reservation(pool: PoolSpec) -> None:
    affinity, job = mapping(pool.machine.get("reservation_affinity")), pool.job
    kind = affinity.get("reservation_affinity_type")
    if is_known(kind) and kind not in ENUMS["ReservationType"]:
        names = list(ENUMS["ReservationType"])[1:]
        message = f"{kind!r} is not a reservation affinity type; expected {join_or(names)}"
        pool.error("reservation", f"{_AFFINITY}.reservation_affinity_type", message, closest(str(kind), names))
        return
    reserved = kind in ("ANY_RESERVATION", "SPECIFIC_RESERVATION")
    if reserved and job.scheduling_strategy == "FLEX_START":
        pool.error("flex-start-reservation", _AFFINITY, f"{kind} and FLEX_START exclude each other; drop one")
    if reserved and job.spec.get("persistent_resource_id"):
        message = f"{kind} and persistent_resource_id exclude each other; the persistent resource has the reservation"
        pool.error("reservation", _AFFINITY, message)
    if kind == "SPECIFIC_RESERVATION" and not (affinity.get("values") and affinity.get("key")):
        message = (
            "SPECIFIC_RESERVATION names no reservation; set key to compute.googleapis.com/reservation-name, and values"
        )
        pool.error("reservation", _AFFINITY, message)
    _check_reservation_region(pool, affinity.get("values"))
    _scarce(pool, reserved=reserved or isinstance(kind, RuntimeValue))


def _check_reservation_region(pool: PoolSpec, names: object) -> None:
    """Check that a reservation is in the job's region; its machines are in one zone of it."""
    region = pool.job.region
    for name in names if isinstance(names, list) and region else ():
        zone = _ZONE.search(name) if isinstance(name, str) else None
        if zone and zone[1].rpartition("-")[0] != region:
            message = f"reservation {name} is in zone {zone[1]}, but the job runs in {region}; use one of that region"
            pool.error("reservation", f"{_AFFINITY}.values", message)


def _scarce(pool: PoolSpec, *, reserved: bool) -> None:
    entry, job = pool.job.catalogue.accelerators.get(pool.accelerator), pool.job
    if entry is None or not entry.capacity or reserved:
        return
    if "required" in entry.capacity:
        message = f"{entry.name} is only available with a shared reservation; add reservation_affinity"
        pool.error("reservation", _AFFINITY, message)
    elif job.scheduling_strategy == "STANDARD" and is_known(job.scheduling.get("strategy", "")):
        message = (
            f"{entry.name} is rarely available without a reservation; use SPOT, FLEX_START or a shared reservation"
        )
        pool.warning("capacity", _AFFINITY, message)
