"""Rules about the machine of a pool: its type, its accelerators and their number; rules about TPUs are in tpus.py."""

import re

from localvertex._base.userinput.spelling import closest, join_or
from localvertex.machines.catalogue import nearest
from localvertex.machines.catalogue.catalogue import has_ended
from localvertex.machines.catalogue.nearest import SUCCESSORS, TOO_SMALL_FOR_GPUS
from localvertex.machines.job.values import RuntimeValue, is_known
from localvertex.machines.rules.job import Job, PoolSpec

_ARM = re.compile(r"a4x-|c4a-")
"""Machines with Arm CPUs."""


def check_machines(job: Job) -> None:
    """Check the machine of every pool."""
    for pool in job.pools:
        if not isinstance(pool.fields.get("machine_spec", {}), dict):
            continue
        _machine_type(pool)
        check_accelerator(pool)
        if pool.kind == "tpu-only":
            continue  # see tpus.py
        if _check_together(pool) and pool.kind:
            _fits(pool)
            if _ARM.match(pool.machine_type):
                message = f"{pool.machine_type} has Arm CPUs; the image has to be built for linux/arm64"
                pool.warning("arm-image", "container_spec.image_uri", message)


def _machine_type(pool: PoolSpec) -> None:
    name, job = pool.machine.get("machine_type"), pool.job
    if name is None:
        pool.error("machine-type", "machine_spec", "machine_type is missing; every pool needs one, e.g. n1-standard-4")
    elif is_known(name) and not pool.kind:
        message = f"{name!r} is not a machine type for {job.purpose}; choose one from `{job.table}`"
        meant, count = nearest.machines(job.catalogue, name), pool.machine.get("accelerator_count")
        if pool.accelerator in job.catalogue.accelerators and isinstance(count, int) and count > 0:
            meant = pool.near(machine_type=(*meant, name)[0])
        pool.error("machine-type", "machine_spec.machine_type", message, meant)


def check_accelerator(pool: PoolSpec) -> None:
    """Check that the accelerator exists and is still offered for training, on whatever machine."""
    if not pool.accelerator:
        return
    entry = pool.job.catalogue.accelerators.get(pool.accelerator)
    part = "machine_spec.accelerator_type"
    if entry is None:
        _unknown_accelerator(pool, part)
    elif has_ended(entry, pool.job.today):
        message = f"{entry.name} reached its end of support on {entry.end_of_support}; the service rejects it"
        pool.error("end-of-support", part, message, pool.near())
    elif not entry.for_training:
        message = f"{entry.name} is not offered for {pool.job.purpose}; choose another accelerator"
        pool.error("accelerator-type", part, message, pool.near())
    elif entry.end_of_support is not None:
        successors = join_or(SUCCESSORS.get(entry.name, ("another accelerator",))[:2])
        message = f"support for {entry.name} ends on {entry.end_of_support}; plan to move to {successors}"
        pool.warning("end-of-support", part, message)


def _unknown_accelerator(pool: PoolSpec, part: str) -> None:
    names = [name for name, entry in pool.job.catalogue.accelerators.items() if entry.for_training]
    meant = nearest.named(pool.accelerator, names) or closest(pool.accelerator, names, 3)
    message = f"{pool.accelerator!r} is not an accelerator type of the API"
    if len(meant) == 1:
        message += f"; did you mean {meant[0]}?"
    elif not meant:
        message += "; names are in capitals, e.g. NVIDIA_TESLA_T4"
    # Several names are alternatives of their own.
    near = pool.near(accelerator_type=meant[0]) if len(meant) == 1 else meant
    pool.error("accelerator-type", part, message, near)


def _check_together(pool: PoolSpec) -> bool:
    """Check that type and count come together; return whether they can be compared with the machine."""
    count = pool.machine.get("accelerator_count")
    if isinstance(count, RuntimeValue) or isinstance(pool.machine.get("accelerator_type"), RuntimeValue):
        return False
    if pool.accelerator and not count:
        found = "accelerator_count is 0 (the SDK then drops the GPU)" if count == 0 else "accelerator_count is missing"
        message = f"accelerator_type is {pool.accelerator}, but {found}; set both or neither"
        counts = pool.job.catalogue.counts.get((pool.machine_type, pool.accelerator), ())
        near = tuple(f"accelerator_count {count}" for count in counts) or pool.near()
        pool.error("accelerator-pair", "machine_spec", message, near)
        return False
    if count and not pool.accelerator:
        message = f"accelerator_count is {count}, but accelerator_type is missing; set both or neither"
        pool.error("accelerator-pair", "machine_spec", message, _on_machine(pool, count))
        return False
    return True


def _on_machine(pool: PoolSpec, count: int) -> tuple[str, ...]:
    catalogue, machine = pool.job.catalogue, pool.machine_type
    return tuple(
        f"{machine} with {count} x {accelerator}"
        for accelerator in catalogue.accelerators_of(machine)
        if count in catalogue.counts[machine, accelerator]
        and not has_ended(catalogue.accelerators[accelerator], pool.job.today)
    )[:3]


def _fits(pool: PoolSpec) -> None:
    machine, accelerator, catalogue = pool.machine_type, pool.accelerator, pool.job.catalogue
    if not accelerator:
        _may_go_without(pool)
        return
    if accelerator not in catalogue.accelerators:
        return
    count = pool.machine["accelerator_count"]
    valid = catalogue.counts.get((machine, accelerator), ())
    if not valid:
        _cannot_be_attached(pool)
    elif count not in valid:
        message = f"{count} x {accelerator} on {machine}; this machine type supports {join_or(valid)} per replica"
        pool.error("accelerator-count", "machine_spec.accelerator_count", message, pool.near())
    elif machine == TOO_SMALL_FOR_GPUS:
        message = f"{machine} with a GPU may stop writing logs; use a larger machine, e.g. n1-highmem-4"
        pool.warning("small-machine", "machine_spec.machine_type", message)


def _may_go_without(pool: PoolSpec) -> None:
    if pool.kind != "gpu-only":
        return
    machine, catalogue = pool.machine_type, pool.job.catalogue
    own = [(each, catalogue.counts[machine, each]) for each in catalogue.accelerators_of(machine)]
    always = [f"{counts[0]} x {accelerator}" for accelerator, counts in own if counts]
    message = f"{machine} always has {join_or(always)}; set accelerator_type and accelerator_count to match"
    pool.error("accelerator-required", "machine_spec", message, tuple(f"{machine} with {each}" for each in always))


def _cannot_be_attached(pool: PoolSpec) -> None:
    catalogue = pool.job.catalogue
    entry = catalogue.accelerators[pool.accelerator]
    if has_ended(entry, pool.job.today) or (not entry.for_training and entry.is_gpu):
        return  # check_accelerator has reported it, with replacements
    carried = catalogue.accelerators_of(pool.machine_type)
    instead = f"it supports {join_or(carried)}" if carried else "it supports no accelerators"
    message = f"{pool.accelerator} cannot be attached to {pool.machine_type}: {instead}"
    pool.error("accelerator-machine", "machine_spec.accelerator_type", message, pool.near())
