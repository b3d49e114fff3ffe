"""Rules about the machine of a pool: its type, its accelerators and their number."""

from accelerators import nearest
from accelerators.catalogue import has_ended
from accelerators.job import Job, Pool
from accelerators.nearest import SUCCESSORS, Demand
from accelerators.run_time import AtRunTime, known
from accelerators.spelling import closest, listed
from accelerators.tpu_rules import check_tpu


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


def check_accelerator(job: Job, pool: Pool, where: str) -> None:
    """Check that the accelerator exists and is still offered, whatever machine it is for."""
    if not pool.accelerator:
        return
    entry = job.catalogue.accelerators.get(pool.accelerator)
    place = f"{where}.accelerator_type"
    if entry is None:
        names = [name for name, known_one in job.catalogue.accelerators.items() if known_one.for_training]
        meant = _meant(pool.accelerator, names)
        hint = f"did you mean {listed(meant)}?" if meant else "names are in capitals, e.g. NVIDIA_TESLA_T4"
        message = f"{pool.accelerator!r} is not an accelerator of the API; {hint}"
        offers = _successors(job, pool, meant[0]) if len(meant) == 1 else meant
        job.note("accelerator-type", "error", place, message, offers)
    elif has_ended(entry, job.today):
        message = f"{entry.name} reached its end of support on {entry.end_of_support}; the service refuses it"
        job.note("end-of-support", "error", place, message, _successors(job, pool))
    elif not entry.for_training:
        message = f"{entry.name} is not offered for custom training; choose another accelerator"
        job.note("accelerator-type", "error", place, message, _successors(job, pool))
    elif entry.end_of_support is not None:
        message = f"support for {entry.name} ends on {entry.end_of_support}; plan to move to {_heirs(entry.name)}"
        job.note("end-of-support", "warning", place, message)


def _heirs(name: str) -> str:
    return listed(SUCCESSORS.get(name, ("another accelerator",))[:2])


def _meant(name: str, names: list[str]) -> tuple[str, ...]:
    """Return the accelerators meant by names such as T4, nvidia-tesla-t4 or NVIDIA_TESLA_L4."""
    parts = {part for part in name.upper().replace("-", "_").split("_") if part} - {"NVIDIA", "TESLA"}
    exact = tuple(full for full in names if parts and parts <= set(full.split("_")))
    return exact or closest(name, names, 3)


def _successors(job: Job, pool: Pool, accelerator: str = "") -> tuple[str, ...]:
    machine, count = (pool.machine.get(key) for key in ("machine_type", "accelerator_count"))
    demand = job.demand(
        machine if isinstance(machine, str) else "",
        accelerator or pool.accelerator,
        count if isinstance(count, int) and count > 0 else 1,
    )
    return nearest.combinations(job.catalogue, demand)


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
    return tuple(f"accelerator_count {count}" for count in counts) or _successors(job, pool)


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
    elif machine == "n1-highmem-2":
        # Google's page on configuring compute warns of it for this very type.
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
    if has_ended(job.catalogue.accelerators[accelerator], job.today):
        return  # said already, with what takes its place
    carried = job.catalogue.carried_by(machine)
    instead = f"it carries {listed(carried)}" if carried else "it carries no accelerator"
    message = f"{accelerator} cannot be attached to {machine}: {instead}"
    alternatives = nearest.combinations(
        job.catalogue, job.demand(machine, accelerator, pool.machine["accelerator_count"])
    )
    job.note("accelerator-machine", "error", f"{where}.accelerator_type", message, alternatives)
