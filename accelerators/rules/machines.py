"""Rules about the machine of a pool: its type, its accelerators and their number."""

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import has_ended
from accelerators.catalogue.nearest import Demand
from accelerators.job.run_time import AtRunTime, known
from accelerators.rules.accelerators import check_accelerator, successors
from accelerators.rules.job import Job, Pool
from accelerators.rules.tpus import check_tpu
from userinput.spelling import listed

TOO_SMALL_FOR_GPUS = "n1-highmem-2"
"""Google's page on configuring compute warns that logs may stop on this very type."""


def check_machines(job: Job) -> None:
    """Check the machine of every pool."""
    for pool in job.pools:
        where = f"{pool.where}.machine_spec"
        if not isinstance(pool.fields.get("machine_spec", {}), dict):
            continue
        is_machine = _machine_type(job, pool, where)
        check_accelerator(job, pool, where)
        if is_machine and job.catalogue.machines[pool.machine["machine_type"]].kind == "tpu-only":
            check_tpu(job, pool, where)
        elif _given_together(job, pool, where) and is_machine:
            _fits(job, pool, where)


def _machine_type(job: Job, pool: Pool, where: str) -> bool:
    name = pool.machine.get("machine_type")
    if name is None:
        message = "no machine_type; the service needs one for every pool: give one, e.g. n1-standard-4"
        job.note("machine-type", "error", where, message)
        return False
    if not known(name):
        return False
    if name not in job.catalogue.machines:
        message = f"{name!r} is not a machine type for custom training; choose one of `python -m accelerators table`"
        job.note("machine-type", "error", f"{where}.machine_type", message, _machines_for(job, pool, name))
        return False
    return True


def _machines_for(job: Job, pool: Pool, name: str) -> tuple[str, ...]:
    count = pool.machine.get("accelerator_count")
    if pool.accelerator in job.catalogue.accelerators and isinstance(count, int) and count > 0:
        meant = nearest.machines(job.catalogue, name)
        return nearest.combinations(job.catalogue, job.demand((*meant, name)[0], pool.accelerator, count))
    return nearest.machines(job.catalogue, name)


def _given_together(job: Job, pool: Pool, where: str) -> bool:
    """Check that type and count come together; return whether there is anything to compare with the machine."""
    machine = pool.machine
    count = machine.get("accelerator_count")
    if isinstance(count, AtRunTime) or isinstance(machine.get("accelerator_type"), AtRunTime):
        return False
    if pool.accelerator and not count:
        found = "accelerator_count is 0 (the SDK then drops the GPU)" if count == 0 else "no accelerator_count"
        message = f"accelerator_type {pool.accelerator} but {found}; give both, or leave both out"
        job.note("accelerator-pair", "error", where, message, _counts(job, pool))
        return False
    if count and not pool.accelerator:
        message = f"accelerator_count {count} but no accelerator_type; give both, or leave both out"
        job.note("accelerator-pair", "error", where, message, _on_machine(job, machine.get("machine_type"), count))
        return False
    return True


def _counts(job: Job, pool: Pool) -> tuple[str, ...]:
    counts = job.catalogue.counts.get((pool.machine.get("machine_type", ""), pool.accelerator), ())
    return tuple(f"accelerator_count {count}" for count in counts) or successors(job, pool)


def _on_machine(job: Job, machine: object, count: int) -> tuple[str, ...]:
    return tuple(
        str(Demand(machine_type=str(machine), accelerator_type=accelerator, accelerator_count=count, today=job.today))
        for accelerator in (job.catalogue.carried_by(machine) if isinstance(machine, str) else ())
        if count in job.catalogue.counts[str(machine), accelerator]
        and not has_ended(job.catalogue.accelerators[accelerator], job.today)
    )[:3]


def _fits(job: Job, pool: Pool, where: str) -> None:
    machine, accelerator = pool.machine["machine_type"], pool.accelerator
    if not accelerator:
        _may_go_without(job, machine, where)
        return
    if accelerator not in job.catalogue.accelerators:
        return
    count = pool.machine["accelerator_count"]
    valid = job.catalogue.counts.get((machine, accelerator), ())
    if not valid:
        _cannot_carry(job, pool, where)
    elif count not in valid:
        message = f"{count} x {accelerator} on {machine}; this machine takes {listed(valid)} of them per replica"
        alternatives = nearest.combinations(job.catalogue, job.demand(machine, accelerator, count))
        job.note("accelerator-count", "error", f"{where}.accelerator_count", message, alternatives)
    elif machine == TOO_SMALL_FOR_GPUS:
        message = "n1-highmem-2 with a GPU may stop to write logs; take a larger machine, e.g. n1-highmem-4"
        job.note("small-machine", "warning", f"{where}.machine_type", message)


def _may_go_without(job: Job, machine: str, where: str) -> None:
    if job.catalogue.machines[machine].kind != "gpu-only":
        return
    own = [
        (accelerator, job.catalogue.counts[machine, accelerator]) for accelerator in job.catalogue.carried_by(machine)
    ]
    always = listed(f"{counts[0]} x {accelerator}" for accelerator, counts in own if counts)
    message = f"{machine} comes with {always}; give accelerator_type and accelerator_count just so"
    offers = tuple(f"{machine} with {counts[0]} x {accelerator}" for accelerator, counts in own if counts)
    job.note("accelerator-required", "error", where, message, offers)


def _cannot_carry(job: Job, pool: Pool, where: str) -> None:
    machine, accelerator = pool.machine["machine_type"], pool.accelerator
    entry = job.catalogue.accelerators[accelerator]
    if has_ended(entry, job.today) or (not entry.for_training and entry.is_gpu):
        return  # said already, with what takes its place
    carried = job.catalogue.carried_by(machine)
    instead = f"it carries {listed(carried)}" if carried else "it carries no accelerator"
    message = f"{accelerator} cannot be attached to {machine}: {instead}"
    alternatives = nearest.combinations(
        job.catalogue, job.demand(machine, accelerator, pool.machine["accelerator_count"])
    )
    job.note("accelerator-machine", "error", f"{where}.accelerator_type", message, alternatives)
