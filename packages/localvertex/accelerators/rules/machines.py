"""Rules about the machine of a pool: its type, its accelerators and their number; rules about TPUs are in tpus.py."""

import re

from accelerators.catalogue import nearest
from accelerators.catalogue.catalogue import has_ended
from accelerators.catalogue.nearest import SUCCESSORS, TOO_SMALL_FOR_GPUS, Demand
from accelerators.job.values import RuntimeValue, is_known
from accelerators.rules.job import Job, Pool
from localvertex_base.userinput.spelling import closest, join_or

_ARM = re.compile(r"a4x-|c4a-")
"""Machines with Arm CPUs."""


def check_machines(job: Job) -> None:
    """Check the machine of every pool."""
    for pool in job.pools:
        path = f"{pool.path}.machine_spec"
        if not isinstance(pool.fields.get("machine_spec", {}), dict):
            continue
        is_machine = _machine_type(job, pool, path)
        check_accelerator(job, pool, path)
        if is_machine and job.catalogue.machines[pool.machine["machine_type"]].kind == "tpu-only":
            continue  # see tpus.py
        if _check_together(job, pool, path) and is_machine:
            _fits(job, pool, path)
            _cpu_architecture(job, pool)


def _machine_type(job: Job, pool: Pool, path: str) -> bool:
    """Check the machine type; return whether the catalogue has it."""
    name = pool.machine.get("machine_type")
    if name is None:
        message = "machine_type is missing; every pool needs one, e.g. n1-standard-4"
        job.note("machine-type", "error", path, message)
        return False
    if not is_known(name):
        return False
    if name not in job.catalogue.machines:
        message = f"{name!r} is not a machine type for {job.purpose}; choose one from `{job.table}`"
        job.note("machine-type", "error", f"{path}.machine_type", message, _machines_for(job, pool, name))
        return False
    return True


def _machines_for(job: Job, pool: Pool, name: str) -> tuple[str, ...]:
    count = pool.machine.get("accelerator_count")
    if pool.accelerator in job.catalogue.accelerators and isinstance(count, int) and count > 0:
        meant = nearest.machines(job.catalogue, name)
        return nearest.combinations(job.catalogue, job.demand((*meant, name)[0], pool.accelerator, count))
    return nearest.machines(job.catalogue, name)


def check_accelerator(job: Job, pool: Pool, path: str) -> None:
    """Check that the accelerator exists and is still offered for training, on whatever machine.

    Args:
        job: The job; gets the findings.
        pool: The pool with the accelerator.
        path: Path of the fields that contain accelerator_type.
    """
    if not pool.accelerator:
        return
    entry = job.catalogue.accelerators.get(pool.accelerator)
    path = f"{path}.accelerator_type"
    if entry is None:
        _unknown_accelerator(job, pool, path)
    elif has_ended(entry, job.today):
        message = f"{entry.name} reached its end of support on {entry.end_of_support}; the service rejects it"
        job.note("end-of-support", "error", path, message, _near(job, pool))
    elif not entry.for_training:
        message = f"{entry.name} is not offered for {job.purpose}; choose another accelerator"
        job.note("accelerator-type", "error", path, message, _near(job, pool))
    elif entry.end_of_support is not None:
        successors = join_or(SUCCESSORS.get(entry.name, ("another accelerator",))[:2])
        message = f"support for {entry.name} ends on {entry.end_of_support}; plan to move to {successors}"
        job.note("end-of-support", "warning", path, message)


def _unknown_accelerator(job: Job, pool: Pool, path: str) -> None:
    names = [name for name, entry in job.catalogue.accelerators.items() if entry.for_training]
    meant = _meant(pool.accelerator, names)
    hint = f"did you mean {join_or(meant)}?" if meant else "names are in capitals, e.g. NVIDIA_TESLA_T4"
    message = f"{pool.accelerator!r} is not an accelerator type of the API; {hint}"
    job.note("accelerator-type", "error", path, message, _near(job, pool, meant[0]) if len(meant) == 1 else meant)


def _meant(name: str, names: list[str]) -> tuple[str, ...]:
    """Return the accelerators meant by names such as T4, nvidia-tesla-t4 or NVIDIA_TESLA_L4."""
    parts = {part for part in name.upper().replace("-", "_").split("_") if part} - {"NVIDIA", "TESLA"}
    exact = tuple(full for full in names if parts and parts <= set(full.split("_")))
    return exact or closest(name, names, 3)


def _near(job: Job, pool: Pool, accelerator: str = "") -> tuple[str, ...]:
    """Return valid choices near the machine of a pool, with another accelerator if one is given."""
    machine, count = (pool.machine.get(key) for key in ("machine_type", "accelerator_count"))
    demand = job.demand(
        machine if isinstance(machine, str) else "",
        accelerator or pool.accelerator,
        count if isinstance(count, int) and count > 0 else 1,
    )
    return nearest.combinations(job.catalogue, demand)


def _check_together(job: Job, pool: Pool, path: str) -> bool:
    """Check that type and count come together; return whether they can be compared with the machine."""
    machine = pool.machine
    count = machine.get("accelerator_count")
    if isinstance(count, RuntimeValue) or isinstance(machine.get("accelerator_type"), RuntimeValue):
        return False
    if pool.accelerator and not count:
        found = "accelerator_count is 0 (the SDK then drops the GPU)" if count == 0 else "accelerator_count is missing"
        message = f"accelerator_type is {pool.accelerator}, but {found}; set both or neither"
        job.note("accelerator-pair", "error", path, message, _counts(job, pool))
        return False
    if count and not pool.accelerator:
        message = f"accelerator_count is {count}, but accelerator_type is missing; set both or neither"
        job.note("accelerator-pair", "error", path, message, _on_machine(job, machine.get("machine_type"), count))
        return False
    return True


def _counts(job: Job, pool: Pool) -> tuple[str, ...]:
    counts = job.catalogue.counts.get((pool.machine.get("machine_type", ""), pool.accelerator), ())
    return tuple(f"accelerator_count {count}" for count in counts) or _near(job, pool)


def _on_machine(job: Job, machine: object, count: int) -> tuple[str, ...]:
    return tuple(
        str(Demand(machine_type=str(machine), accelerator_type=accelerator, accelerator_count=count, today=job.today))
        for accelerator in (job.catalogue.accelerators_of(machine) if isinstance(machine, str) else ())
        if count in job.catalogue.counts[str(machine), accelerator]
        and not has_ended(job.catalogue.accelerators[accelerator], job.today)
    )[:3]


def _fits(job: Job, pool: Pool, path: str) -> None:
    machine, accelerator = pool.machine["machine_type"], pool.accelerator
    if not accelerator:
        _may_go_without(job, machine, path)
        return
    if accelerator not in job.catalogue.accelerators:
        return
    count = pool.machine["accelerator_count"]
    valid = job.catalogue.counts.get((machine, accelerator), ())
    if not valid:
        _cannot_be_attached(job, pool, path)
    elif count not in valid:
        message = f"{count} x {accelerator} on {machine}; this machine type supports {join_or(valid)} per replica"
        alternatives = nearest.combinations(job.catalogue, job.demand(machine, accelerator, count))
        job.note("accelerator-count", "error", f"{path}.accelerator_count", message, alternatives)
    elif machine == TOO_SMALL_FOR_GPUS:
        message = f"{machine} with a GPU may stop writing logs; use a larger machine, e.g. n1-highmem-4"
        job.note("small-machine", "warning", f"{path}.machine_type", message)


def _cpu_architecture(job: Job, pool: Pool) -> None:
    if not _ARM.match(pool.machine["machine_type"]):
        return
    message = f"{pool.machine['machine_type']} has Arm CPUs; the image has to be built for linux/arm64"
    job.note("arm-image", "warning", f"{pool.path}.container_spec.image_uri", message)


def _may_go_without(job: Job, machine: str, path: str) -> None:
    if job.catalogue.machines[machine].kind != "gpu-only":
        return
    own = [
        (accelerator, job.catalogue.counts[machine, accelerator])
        for accelerator in job.catalogue.accelerators_of(machine)
    ]
    always = join_or(f"{counts[0]} x {accelerator}" for accelerator, counts in own if counts)
    message = f"{machine} always has {always}; set accelerator_type and accelerator_count to match"
    offers = tuple(f"{machine} with {counts[0]} x {accelerator}" for accelerator, counts in own if counts)
    job.note("accelerator-required", "error", path, message, offers)


def _cannot_be_attached(job: Job, pool: Pool, path: str) -> None:
    machine, accelerator = pool.machine["machine_type"], pool.accelerator
    entry = job.catalogue.accelerators[accelerator]
    if has_ended(entry, job.today) or (not entry.for_training and entry.is_gpu):
        return  # check_accelerator has reported it, with replacements
    carried = job.catalogue.accelerators_of(machine)
    instead = f"it supports {join_or(carried)}" if carried else "it supports no accelerators"
    message = f"{accelerator} cannot be attached to {machine}: {instead}"
    demand = job.demand(machine, accelerator, pool.machine["accelerator_count"])
    alternatives = nearest.combinations(job.catalogue, demand)
    job.note("accelerator-machine", "error", f"{path}.accelerator_type", message, alternatives)
